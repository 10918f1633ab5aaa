"""The pass of chapter 8: it follows that of event and time schedules in the same unit of work (8.16)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from assetflow.core.consumers import Decision
from assetflow.core.freshness.deciding import decide
from assetflow.core.freshness.records import RunState
from assetflow.core.freshness.running import begin_run, end_run
from assetflow.core.freshness.touching import touch_flow
from assetflow.core.rules.state import State


def keep_up_to_date(
    state: State, decided: Sequence[Decision], now: datetime, *, recorded: bool = False
) -> list[Decision]:
    """Ask for the Eager targets that are to be run now; return these decisions after those that were made before.

    Parameters:
        decided: the decisions of this pass for event schedules and backfills; their runs read from now on.
        recorded: whether all is recorded that counts at this instant (9.6).
    """
    if not state.freshness.compares:
        return list(decided)
    _begin_runs(state, decided, now)
    made = decide(state.freshness, now, recorded=recorded)
    for decision in made:
        state.decide(decision)
    return [*decided, *made]


def end_kept_run(state: State, consumer: int, decision: UUID, outcome: RunState, now: datetime) -> None:
    """Remember how the run of a decision ended, if what it read and tried is remembered. Contract 8.6."""
    if state.freshness.compares:
        run = next((run for run in state.freshness.runs.of(consumer) if run.id == decision), None)
        if run is not None:
            end_run(state.freshness, run, outcome, now)


def look_at_all(state: State) -> None:
    """Put all Eager targets on the agenda, because nothing was decided for a while."""
    for node in list(state.freshness.graph.all()):
        if node.keeping is not None:
            touch_flow(state.freshness, node)


def _begin_runs(state: State, decided: Iterable[Decision], now: datetime) -> None:
    """Remember the runs of flows that make what is compared."""
    book = state.freshness
    for each in decided:
        node = book.graph.find(each.consumer)
        if node is not None and each.kind in ("asset", "backfill") and any(map(book.concerns, node.outputs)):
            begin_run(book, node, each.target_key, each.id, each.kind, now)
