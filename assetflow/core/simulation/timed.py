"""Simulating with a clock that runs between the steps: every instant at which time acts, in order. Contract 9.6."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from assetflow.core.consumers import Consumer
from assetflow.core.rules import clock
from assetflow.core.rules.fold import pass_over
from assetflow.core.simulation.actions import attempt
from assetflow.core.simulation.scenario import Scenario, Step
from assetflow.core.simulation.steps import StartStep, StopStep
from assetflow.core.simulation.world import World

_INSTANT = timedelta(microseconds=1)


def run_timed(world: World, scenario: Scenario) -> None:
    """Carry out the steps of a scenario, and let time act between them."""
    world.state.clocks.begun = world.now
    missed: list[tuple[int, Step]] = []
    stopped = False
    for number, step in enumerate(scenario.steps):
        if isinstance(step.action, StartStep):
            for earlier, its_step in missed:
                _advance(world, its_step.time, number)
                _carry_out(world, its_step, earlier, number)
            missed.clear()
            stopped = False
        elif stopped:
            missed.append((number, step))
            continue
        _advance(world, step.time, number)
        _carry_out(world, step, number, number)
        stopped = isinstance(step.action, StopStep)
    if not stopped:
        _finish(world)


def _carry_out(world: World, step: Step, number: int, pass_number: int) -> None:
    """Carry out a step, and the pass that follows; while the evaluator is down, the pass comes with its start."""
    world.step = number
    touched = attempt(world, step.action)
    world.step = pass_number
    world.note_decisions(pass_over(world.state, touched, world.now))


def _advance(world: World, until: datetime, step: int) -> None:
    """Let time pass: end the present instant, go through those in between, and begin the last.

    Parameters:
        step: the number of the next step; what happens in between belongs to it.
    """
    if world.step is None:
        world.step = step
    if until == world.now:
        return
    _finish(world)
    world.step = step
    while (moment := _next(world)) is not None and moment < until:
        _begin(world, moment)
        _finish(world)
    world.now = until - _INSTANT
    world.run_times()
    _begin(world, until)


def _next(world: World) -> datetime | None:
    found = (clock.due_at(world.state, each, _keys(world, each)) for each in world.consumers if each.is_timed)
    return min((moment for moment in found if moment is not None), default=None)


def _keys(world: World, consumer: Consumer) -> Collection[str | None]:
    return world.state.queues.target_keys(consumer.id)


def _begin(world: World, now: datetime) -> None:
    world.now = world.state.clocks.begun = now
    for consumer in world.consumers:
        if consumer.is_timed:
            clock.begin(world.state, consumer, now, _keys(world, consumer))


def _finish(world: World) -> None:
    world.run_times()
    for consumer in world.consumers:
        if consumer.is_timed:
            world.note_decisions(clock.finish(world.state, consumer, world.now, _keys(world, consumer)))
    world.note_missed()
