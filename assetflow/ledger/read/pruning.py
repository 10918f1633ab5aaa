"""What of a ledger can be pruned: what is old and no longer needed.

An event is needed while it is queued, while a decision that consumed it has no run that has ended, and while it is
the newest event of its asset or of an alias. Events of one recording go together: the ledger knows all of a recording
that is found again in Prefect, or nothing of it.

What is not an event is needed while it is the newest of its kind, and while something that is not over refers to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, and_, bindparam, exists, func, literal_column, not_, or_, select

from assetflow.core.freshness.state.source import REMEMBERED
from assetflow.ledger.read import Topic
from assetflow.ledger.sql.bulk import UtcTime, in_values
from assetflow.ledger.sql.freshness_tables import BACKFILL, KEPT_RUN, POLICY_CHANGE, TARGET
from assetflow.ledger.sql.rows import QUEUED
from assetflow.ledger.sql.tables import (
    DECISION,
    ENDED_RUN,
    EVENT,
    EVENT_ALIAS,
    FAILED_CHECKS,
    MISSED_DEADLINE,
    NO_KEY,
    RECEIPT,
    REFUSED,
)

BEFORE = bindparam("before", type_=UtcTime())


@dataclass(frozen=True)
class Pruned:
    """How many rows were pruned, or can be."""

    events: int = 0
    receipts: int = 0
    decisions: int = 0
    refused: int = 0
    runs: int = 0
    deadlines: int = 0
    changes: int = 0
    ends: int = 0
    checks: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


class PruningReader(Topic):
    """Reads what can be pruned.

    Parameters of all methods:
        before: what was recorded and occurred before this time is old.
    """

    def count(self, before: datetime) -> Pruned:
        """Return how many rows are old and no longer needed."""
        counts = [self._scalar(query, {"before": before}) for query in _COUNTS]
        return Pruned(*counts)

    def needed_recordings(self, recordings: Iterable[UUID], before: datetime) -> set[UUID]:
        """Return those of these recordings that the ledger has and that are not old, or still needed."""
        return set(self._scalars(_NEEDED_RECORDINGS, {"ids": list(recordings), "before": before}))

    def open_decisions(self, decisions: Iterable[UUID], before: datetime) -> set[UUID]:
        """Return those of these decisions that are not old, or whose run has not ended."""
        return set(self._scalars(_OPEN_DECISIONS, {"ids": list(decisions), "before": before}))

    def finished_runs(self, flow_runs: Iterable[UUID], before: datetime) -> set[UUID]:
        """Return those of these flow runs that have ended and belong to an old decision."""
        return set(self._scalars(_FINISHED_RUNS, {"ids": list(flow_runs), "before": before}))


def is_over(decision: FromClause) -> ColumnElement[bool]:
    """Return the condition that a decision is old and its run has ended."""
    columns = decision.c
    return and_(columns.made < BEFORE, columns.ended.is_not(None), columns.flow_run_id.is_not(None))


def is_needed(event: FromClause) -> ColumnElement[bool]:
    """Return the condition that an event is still needed, or is not old."""
    columns = event.c
    receipt, decision = RECEIPT.alias(), DECISION.alias()
    holding = (
        select(receipt.c.sequence)
        .select_from(receipt.outerjoin(decision, decision.c.number == receipt.c.decision))
        .where(receipt.c.sequence == columns.sequence)
        .where(or_(receipt.c.status == QUEUED, and_(receipt.c.decision.is_not(None), not_(is_over(decision)))))
    )
    same_asset, own, same_alias = EVENT.alias(), EVENT_ALIAS.alias(), EVENT_ALIAS.alias()
    newest = select(func.max(same_asset.c.sequence)).where(same_asset.c.uri == columns.uri)
    newest_of_alias = select(func.max(same_alias.c.sequence)).where(same_alias.c.alias == own.c.alias)
    last_through_alias = select(own.c.alias).where(
        own.c.sequence == columns.sequence, own.c.sequence == newest_of_alias.scalar_subquery()
    )
    return or_(
        columns.recorded >= BEFORE,
        columns.occurred >= BEFORE,
        exists(holding),
        columns.sequence == newest.scalar_subquery(),
        exists(last_through_alias),
    )


def is_prunable(event: FromClause) -> ColumnElement[bool]:
    """Return the condition that no event of the recording of this event is needed."""
    together = EVENT.alias()
    needed = select(together.c.sequence).where(together.c.recording == event.c.recording, is_needed(together))
    # The first two follow from the third, and rule out most events at little cost.
    return and_(event.c.recorded < BEFORE, event.c.occurred < BEFORE, not_(exists(needed)))


def goes_with_its_events(decision: FromClause) -> ColumnElement[bool]:
    """Return the condition that a decision goes when all of its events are pruned.

    Decisions for a key stay: they say for which keys something has run, and how often a backfill ran it.
    """
    return and_(decision.c.target_key == NO_KEY, is_over(decision))


def goes_without_events(decision: FromClause) -> ColumnElement[bool]:
    """Return the condition that a decision goes, if it has no events: times, deadlines and Eager flows make such ones.

    The newest of its consumer, key and kind stays, and the last one of a target. Those of backfills stay while their
    backfill does; those for a key say for ever how often a backfill ran it.
    """
    columns = decision.c
    later = DECISION.alias()
    outlived = exists().where(
        later.c.consumer == columns.consumer,
        later.c.target_key == columns.target_key,
        later.c.kind == columns.kind,
        later.c.number > columns.number,
    )
    of_target = exists().where(
        TARGET.c.consumer == columns.consumer,
        TARGET.c.target_key == columns.target_key,
        TARGET.c.decision == columns.id,
    )
    going_on = exists().where(BACKFILL.c.made <= columns.made, not_(is_over_backfill(BACKFILL)))
    of_backfill = and_(columns.kind == "backfill", or_(columns.target_key != NO_KEY, going_on))
    return and_(is_over(decision), outlived, not_(of_target), not_(of_backfill))


def is_over_backfill(backfill: FromClause) -> ColumnElement[bool]:
    """Return the condition that a backfill ended before, or never began."""
    columns = backfill.c
    return and_(columns.made < BEFORE, or_(func.coalesce(columns.ended < BEFORE, False), columns.begun.is_(None)))


def is_over_run(run: FromClause) -> ColumnElement[bool]:
    """Return the condition that a run of a flow in the data graph is not needed.

    The last completed ones of a flow stay: they say how long it is expected to take (8.14).
    """
    columns, other, decision = run.c, KEPT_RUN.alias(), DECISION.alias()
    completed: ColumnElement[str] = literal_column("'completed'")
    oldest_remembered = (
        select(other.c.ended)
        .where(other.c.consumer == columns.consumer, other.c.state == completed, other.c.kind != "manual")
        .order_by(other.c.ended.desc())
        .limit(1)
        .offset(REMEMBERED - 1)
        .scalar_subquery()
    )
    remembered = and_(
        columns.state == completed,
        columns.kind != "manual",
        or_(oldest_remembered.is_(None), columns.ended >= oldest_remembered),
    )
    goes_on = exists().where(decision.c.id == columns.id, not_(is_over(decision)))
    return and_(columns.ended < BEFORE, not_(remembered), not_(goes_on))


def is_over_deadline(missed: FromClause) -> ColumnElement[bool]:
    """Return the condition that a missed deadline is announced, and not the last one of its consumer."""
    columns, later = missed.c, MISSED_DEADLINE.alias()
    outlived = exists().where(later.c.consumer == columns.consumer, later.c.number > columns.number)
    return and_(columns.at < BEFORE, columns.announced.is_not(None), outlived)


def is_over_change(change: FromClause) -> ColumnElement[bool]:
    """Return the condition that Prefect has a change of a policy's state, and that it is not the last one."""
    columns, later = change.c, POLICY_CHANGE.alias()
    outlived = exists().where(later.c.uri == columns.uri, later.c.number > columns.number)
    return and_(columns.at < BEFORE, columns.stored.is_not(None), outlived)


def is_over_end(run: FromClause) -> ColumnElement[bool]:
    """Return the condition that Prefect knows of a run's end, and that it is not the last of its flow and key."""
    columns, later = run.c, ENDED_RUN.alias()
    of_target = (later.c.deployment_id == columns.deployment_id, later.c.target_key == columns.target_key)
    outlived = exists().where(*of_target, later.c.number > columns.number)
    return and_(columns.ended < BEFORE, columns.stored.is_not(None), outlived)


def is_over_check(failed: FromClause) -> ColumnElement[bool]:
    """Return the condition that Prefect knows of an old failed check."""
    return and_(failed.c.at < BEFORE, failed.c.stored.is_not(None))


def _counting(query: Any) -> Any:
    return select(func.count()).select_from(query.subquery())


def _counts() -> list[Any]:
    receipts = select(RECEIPT.c.sequence).join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence)
    consumed = select(RECEIPT.c.sequence).where(RECEIPT.c.decision == DECISION.c.number)
    kept = consumed.join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence).where(not_(is_prunable(EVENT)))
    goes = or_(and_(goes_with_its_events(DECISION), exists(consumed)), goes_without_events(DECISION))
    decisions = select(DECISION.c.number).where(goes, not_(exists(kept)))
    return [
        _counting(select(EVENT.c.sequence).where(is_prunable(EVENT))),
        _counting(receipts.where(is_prunable(EVENT))),
        _counting(decisions),
        _counting(select(REFUSED.c.number).where(REFUSED.c.at < BEFORE)),
        _counting(select(KEPT_RUN.c.id).where(is_over_run(KEPT_RUN))),
        _counting(select(MISSED_DEADLINE.c.number).where(is_over_deadline(MISSED_DEADLINE))),
        _counting(select(POLICY_CHANGE.c.number).where(is_over_change(POLICY_CHANGE))),
        _counting(select(ENDED_RUN.c.number).where(is_over_end(ENDED_RUN))),
        _counting(select(FAILED_CHECKS.c.number).where(is_over_check(FAILED_CHECKS))),
    ]


_COUNTS = _counts()
_NEEDED_RECORDINGS = select(EVENT.c.recording).where(in_values(EVENT.c.recording, "ids"), is_needed(EVENT))
_OPEN_DECISIONS = select(DECISION.c.id).where(in_values(DECISION.c.id, "ids"), not_(is_over(DECISION)))
_FINISHED_RUNS = select(DECISION.c.flow_run_id).where(in_values(DECISION.c.flow_run_id, "ids"), is_over(DECISION))
