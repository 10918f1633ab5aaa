"""Simulating with a clock that runs between the steps: every instant at which time acts, in order. Contract 9.6."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from assetflow.core.freshness.deciding import next_look
from assetflow.core.rules import clock
from assetflow.core.simulate.actions import attempt
from assetflow.core.simulate.lasting import next_end
from assetflow.core.simulate.scenario import Scenario, Step
from assetflow.core.simulate.steps import StartStep, StopStep
from assetflow.core.simulate.world import World
from assetflow.core.simulation.passes import end_runs, follow, keep_up_to_date, pass_after, run_times, tell_states
from assetflow.core.values.consumers import Consumer

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
    if scenario.steps and not stopped:
        _finish(world)


def _carry_out(world: World, step: Step, number: int, pass_number: int) -> None:
    """Carry out a step, and the pass that follows; while the evaluator is down, the pass comes with its start."""
    world.step, world.lasting.ended = number, None
    touched = attempt(world, step.action)
    world.step = pass_number
    pass_after(world, touched)
    end_runs(world, world.now)


def _advance(world: World, until: datetime, step: int) -> None:
    """Let time pass: end the present instant, go through those in between, and begin the last.

    Parameters:
        step: the number of the next step; what happens in between belongs to it.
    """
    if world.step is None:
        world.step = step
        pass_after(world, {})
        end_runs(world, world.now)
    if until == world.now:
        return
    _finish(world)
    world.step = step
    while (moment := _next(world)) is not None and moment < until:
        _begin(world, moment)
        _finish(world)
    if not world.lasting.specs:
        # Their times need no instants of their own: nothing follows from the runs.
        world.now = until - _INSTANT
        run_times(world)
    _begin(world, until)


def _next(world: World) -> datetime | None:
    """Return the next instant at which something happens by itself."""
    found = [clock.due_at(world.state, each, _keys(world, each)) for each in world.consumers if each.is_timed]
    found += [next_look(world.state.freshness), next_end(world)]
    if world.lasting.specs:
        found.append(world.timers.next_time())
    return min((moment for moment in found if moment is not None), default=None)


def _keys(world: World, consumer: Consumer) -> Collection[str | None]:
    """Return the keys of a consumer's queues: those with events, and those that have become empty but are still due."""
    filled = set(world.state.queues.target_keys(consumer.id))
    known = world.queue_keys.setdefault(consumer.id, set())
    known |= filled
    return filled | {key for key in known - filled if world.state.clocks.queue(consumer.id, key).due is not None}


def _begin(world: World, now: datetime) -> None:
    """Do part (1) of an instant, and end the runs that end at it by themselves."""
    world.now = world.state.clocks.begun = now
    world.lasting.ended = None
    for consumer in world.consumers:
        if consumer.is_timed:
            clock.begin(world.state, consumer, now, _keys(world, consumer))
    end_runs(world, now)


def _finish(world: World) -> None:
    """Do parts (3) to (5) of an instant, until no run of it ends at it any more."""
    while True:
        run_times(world)
        for consumer in world.consumers:
            if consumer.is_timed:
                follow(world, clock.finish(world.state, consumer, world.now, _keys(world, consumer)))
        keep_up_to_date(world, recorded=True)
        if not end_runs(world, world.now):
            break
    tell_states(world)
    world.note_missed()
