"""Remove what is old and no longer needed from a ledger, chunk by chunk; `read.pruning` says what that is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, delete, exists, func, not_, or_, select

from assetflow.ledger.read.pruning import BEFORE, Pruned, goes_with_its_events, is_prunable
from assetflow.ledger.sql.backfill_tables import BACKFILL, BACKFILL_EDGE, BACKFILL_TARGET
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.tables import DECISION, EVENT, EVENT_ALIAS, LEDGER, RECEIPT, REFUSED
from assetflow.ledger.write.prune_versions import prune_versions

# The number of events in one transaction, for which other writers wait.
CHUNK = 500

_IN_CHUNK = select(EVENT.c.sequence).where(
    EVENT.c.sequence > bindparam("after"), EVENT.c.sequence <= bindparam("upto"), is_prunable(EVENT)
)
_OLD_BACKFILLS = select(BACKFILL.c.number).where(
    or_(BACKFILL.c.ended < BEFORE, and_(BACKFILL.c.begun.is_(None), BACKFILL.c.made < BEFORE))
)
_OF_BACKFILL = (
    (BACKFILL_EDGE, BACKFILL_EDGE.c.backfill),
    (BACKFILL_TARGET, BACKFILL_TARGET.c.backfill),
    (BACKFILL, BACKFILL.c.number),
)


@dataclass(frozen=True)
class Step:
    """One step of pruning.

    Attributes:
        upto: the sequence of the last event of the chunk; `None` if no event after it is old.
    """

    pruned: Pruned
    upto: int | None


def prune_chunk(connection: Connection, before: datetime, after: int) -> Step:
    """Remove what can be pruned from the chunk of events after a sequence."""
    # On Postgres, writers wait for each other here.
    connection.execute(select(LEDGER.c.number).with_for_update())
    upto = _end_of_chunk(connection, before, after)
    if upto is None:
        prune_versions(connection, before)
        _remove_backfills(connection, before)
        return Step(Pruned(refused=_remove_refused(connection, before)), None)
    range_ = {"before": before, "after": after, "upto": upto}
    return Step(_remove(connection, list(connection.scalars(_IN_CHUNK, range_)), before), upto)


def _end_of_chunk(connection: Connection, before: datetime, after: int) -> int | None:
    """Return the last event of the next chunk, or `None` if nothing in it is old: later events were recorded later."""
    columns = select(EVENT.c.sequence, EVENT.c.recorded).where(EVENT.c.sequence > after)
    chunk = columns.order_by(EVENT.c.sequence).limit(CHUNK).subquery()
    oldest = select(func.max(chunk.c.sequence), func.min(chunk.c.recorded))
    upto, recorded = connection.execute(oldest).one()
    return upto if recorded is not None and recorded < before else None


def _remove(connection: Connection, sequences: list[int], before: datetime) -> Pruned:
    if not sequences:
        return Pruned()
    given = {"sequences": sequences}
    consumed = select(RECEIPT.c.decision).where(
        in_values(RECEIPT.c.sequence, "sequences"), RECEIPT.c.decision.is_not(None)
    )
    decisions = list(connection.scalars(consumed.distinct(), given))
    connection.execute(delete(EVENT_ALIAS).where(in_values(EVENT_ALIAS.c.sequence, "sequences")), given)
    receipts = connection.execute(delete(RECEIPT).where(in_values(RECEIPT.c.sequence, "sequences")), given).rowcount
    events = connection.execute(delete(EVENT).where(in_values(EVENT.c.sequence, "sequences")), given).rowcount
    left = select(RECEIPT.c.sequence).where(RECEIPT.c.decision == DECISION.c.number)
    empty = and_(in_values(DECISION.c.number, "numbers"), goes_with_its_events(DECISION), not_(exists(left)))
    gone = connection.execute(delete(DECISION).where(empty), {"numbers": decisions, "before": before}).rowcount
    return Pruned(events, receipts, gone)


def _remove_backfills(connection: Connection, before: datetime) -> None:
    """Remove the backfills that ended before, and those that never began."""
    old = list(connection.scalars(_OLD_BACKFILLS, {"before": before}))
    for table, number in _OF_BACKFILL if old else ():
        connection.execute(delete(table).where(in_values(number, "numbers")), {"numbers": old})


def _remove_refused(connection: Connection, before: datetime) -> int:
    return connection.execute(delete(REFUSED).where(REFUSED.c.at < BEFORE), {"before": before}).rowcount
