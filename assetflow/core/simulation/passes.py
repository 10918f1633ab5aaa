"""The passes of a simulation: those that follow steps and ends of runs, and what becomes due at an instant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from assetflow.core.freshness.states import judge_states
from assetflow.core.rules import keeping
from assetflow.core.rules.fold import Touched, pass_over
from assetflow.core.simulate import lasting
from assetflow.core.simulate.world import World
from assetflow.core.values.consumers import Decision


def pass_after(world: World, touched: Touched) -> None:
    """Make the pass that follows a step or the end of a run."""
    keep_up_to_date(world, pass_over(world.state, touched, world.now), recorded=False)


def full_pass(world: World, touched: Touched) -> None:
    """Make the pass of a tick: everything that is due, and the states of policies last."""
    run_times(world)
    keep_up_to_date(world, pass_over(world.state, touched, world.now), recorded=True)
    tell_states(world)


def run_times(world: World) -> bool:
    """Run the times of timetables that have come; return True if there are any."""
    runs = world.run_times()
    lasting.follow_times(world, runs)
    return bool(runs)


def follow(world: World, decisions: Iterable[Decision]) -> None:
    """Note decisions, and let their runs begin."""
    made = list(decisions)
    world.note_decisions(made)
    lasting.follow_decisions(world, made)


def keep_up_to_date(world: World, decided: Sequence[Decision] = (), *, recorded: bool) -> None:
    """Make the pass over what Eager and Lazy consumers and backfills ask for.

    Parameters:
        decided: the decisions of the pass before it, for event schedules.
    """
    follow(world, keeping.keep_up_to_date(world.state, decided, world.now, recorded=recorded))


def end_runs(world: World, until: datetime) -> bool:
    """End the runs that end by themselves up to a moment, each with its pass; return True if there were any."""
    ended = False
    while (touched := lasting.end_next(world, until)) is not None:
        pass_after(world, touched)
        ended = True
    return ended


def tell_states(world: World) -> None:
    """Judge the states of policies, and note those that are told."""
    judge_states(world.state.freshness, world.now, since=world.now)
    world.note_told()
