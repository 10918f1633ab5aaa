"""Taking what is old out of a ledger. What anything still needs stays, and a recording goes as a whole or stays.

An event is needed as long as it is queued, as long as a decision that consumed it has no run that has ended, and as
long as it is the newest one of its asset or of an alias. What was recorded together goes together: of a recording
that is found again in Prefect the ledger knows either all or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, FromClause, and_, bindparam, delete, exists, func, not_, or_, select

from assetflow.ledger.among import among
from assetflow.ledger.rows import QUEUED
from assetflow.ledger.tables import DECISION, EVENT, EVENT_ALIAS, LEDGER, NO_KEY, RECEIPT, REFUSED
from assetflow.ledger.types import Moment

# So many events are looked at in one transaction, and whoever writes waits for it.
CHUNK = 500
_BEFORE = bindparam("before", type_=Moment())


@dataclass(frozen=True)
class Pruned:
    """How many rows were taken out, or would be."""

    events: int = 0
    receipts: int = 0
    decisions: int = 0
    refused: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class Step:
    """One step of pruning.

    Attributes:
        upto: the sequence of the last event that was looked at; none when there is nothing old behind it.
    """

    pruned: Pruned
    upto: int | None


def prune(connection: Connection, before: datetime, after: int) -> Step:
    """See `Writer.prune`."""
    # On Postgres writers wait for each other here.
    connection.execute(select(LEDGER.c.number).with_for_update())
    upto = _end_of_chunk(connection, before, after)
    if upto is None:
        return Step(Pruned(refused=_remove_refused(connection, before)), None)
    range_ = {"before": before, "after": after, "upto": upto}
    return Step(_remove(connection, list(connection.scalars(_IN_CHUNK, range_)), before), upto)


def prunable(connection: Connection, before: datetime) -> Pruned:
    """See `Reader.prunable`."""
    given = {"before": before}
    events, receipts, decisions, refused = (connection.execute(query, given).scalar_one() for query in _COUNTS)
    return Pruned(events, receipts, decisions, refused)


def needed_recordings(connection: Connection, recordings: Iterable[UUID], before: datetime) -> set[UUID]:
    """See `Reader.needed_recordings`."""
    return set(connection.scalars(_NEEDED_RECORDINGS, {"ids": list(recordings), "before": before}))


def open_decisions(connection: Connection, decisions: Iterable[UUID], before: datetime) -> set[UUID]:
    """See `Reader.open_decisions`."""
    query = select(DECISION.c.id).where(among(DECISION.c.id, "ids"), not_(_is_over(DECISION)))
    return set(connection.scalars(query, {"ids": list(decisions), "before": before}))


def runs_that_are_over(connection: Connection, flow_runs: Iterable[UUID], before: datetime) -> set[UUID]:
    """See `Reader.runs_that_are_over`."""
    query = select(DECISION.c.flow_run_id).where(among(DECISION.c.flow_run_id, "ids"), _is_over(DECISION))
    return set(connection.scalars(query, {"ids": list(flow_runs), "before": before}))


def _is_over(decision: FromClause) -> ColumnElement[bool]:
    """Whether a decision is old, and has had its run."""
    columns = decision.c
    return and_(columns.made < _BEFORE, columns.ended.is_not(None), columns.flow_run_id.is_not(None))


def _is_needed(event: FromClause) -> ColumnElement[bool]:
    """Whether anything needs an event still."""
    columns = event.c
    receipt, decision = RECEIPT.alias(), DECISION.alias()
    holding = (
        select(receipt.c.sequence)
        .select_from(receipt.outerjoin(decision, decision.c.number == receipt.c.decision))
        .where(receipt.c.sequence == columns.sequence)
        .where(or_(receipt.c.status == QUEUED, and_(receipt.c.decision.is_not(None), not_(_is_over(decision)))))
    )
    same_asset, own, same_alias = EVENT.alias(), EVENT_ALIAS.alias(), EVENT_ALIAS.alias()
    newest = select(func.max(same_asset.c.sequence)).where(same_asset.c.uri == columns.uri)
    newest_of_alias = select(func.max(same_alias.c.sequence)).where(same_alias.c.alias == own.c.alias)
    last_through_alias = select(own.c.alias).where(
        own.c.sequence == columns.sequence, own.c.sequence == newest_of_alias.scalar_subquery()
    )
    return or_(
        columns.recorded >= _BEFORE,
        columns.occurred >= _BEFORE,
        exists(holding),
        columns.sequence == newest.scalar_subquery(),
        exists(last_through_alias),
    )


def _is_prunable(event: FromClause) -> ColumnElement[bool]:
    """Whether no event of an event's recording is needed."""
    together = EVENT.alias()
    needed = select(together.c.sequence).where(together.c.recording == event.c.recording, _is_needed(together))
    # The first two are true of every such event, and tell at little cost that most others are none.
    return and_(event.c.recorded < _BEFORE, event.c.occurred < _BEFORE, not_(exists(needed)))


def _goes_with_its_events(decision: FromClause) -> ColumnElement[bool]:
    """Decisions for a key stay: they say for which keys something has run, and how often it was run again."""
    return and_(decision.c.target_key == NO_KEY, _is_over(decision))


def _counting(query: Any) -> Any:
    return select(func.count()).select_from(query.subquery())


def _counts() -> list[Any]:
    receipts = select(RECEIPT.c.sequence).join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence)
    consumed = select(RECEIPT.c.sequence).where(RECEIPT.c.decision == DECISION.c.number)
    kept = consumed.join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence).where(not_(_is_prunable(EVENT)))
    decisions = select(DECISION.c.number).where(_goes_with_its_events(DECISION), exists(consumed), not_(exists(kept)))
    return [
        _counting(select(EVENT.c.sequence).where(_is_prunable(EVENT))),
        _counting(receipts.where(_is_prunable(EVENT))),
        _counting(decisions),
        _counting(select(REFUSED.c.number).where(REFUSED.c.at < _BEFORE)),
    ]


_COUNTS = _counts()
_IN_CHUNK = select(EVENT.c.sequence).where(
    EVENT.c.sequence > bindparam("after"), EVENT.c.sequence <= bindparam("upto"), _is_prunable(EVENT)
)
_NEEDED_RECORDINGS = select(EVENT.c.recording).where(among(EVENT.c.recording, "ids"), _is_needed(EVENT))


def _end_of_chunk(connection: Connection, before: datetime, after: int) -> int | None:
    """The last event of the next chunk; none if it has nothing old: what comes later was recorded later."""
    columns = select(EVENT.c.sequence, EVENT.c.recorded).where(EVENT.c.sequence > after)
    chunk = columns.order_by(EVENT.c.sequence).limit(CHUNK).subquery()
    oldest = select(func.max(chunk.c.sequence), func.min(chunk.c.recorded))
    upto, recorded = connection.execute(oldest).one()
    return upto if recorded is not None and recorded < before else None


def _remove(connection: Connection, sequences: list[int], before: datetime) -> Pruned:
    if not sequences:
        return Pruned()
    given = {"sequences": sequences}
    consumed = select(RECEIPT.c.decision).where(among(RECEIPT.c.sequence, "sequences"), RECEIPT.c.decision.is_not(None))
    decisions = list(connection.scalars(consumed.distinct(), given))
    connection.execute(delete(EVENT_ALIAS).where(among(EVENT_ALIAS.c.sequence, "sequences")), given)
    receipts = connection.execute(delete(RECEIPT).where(among(RECEIPT.c.sequence, "sequences")), given).rowcount
    events = connection.execute(delete(EVENT).where(among(EVENT.c.sequence, "sequences")), given).rowcount
    left = select(RECEIPT.c.sequence).where(RECEIPT.c.decision == DECISION.c.number)
    empty = and_(among(DECISION.c.number, "numbers"), _goes_with_its_events(DECISION), not_(exists(left)))
    gone = connection.execute(delete(DECISION).where(empty), {"numbers": decisions, "before": before}).rowcount
    return Pruned(events, receipts, gone)


def _remove_refused(connection: Connection, before: datetime) -> int:
    return connection.execute(delete(REFUSED).where(REFUSED.c.at < _BEFORE), {"before": before}).rowcount
