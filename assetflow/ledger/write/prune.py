"""Remove what is old and no longer needed from a ledger, chunk by chunk; `read.pruning` says what that is."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, delete, exists, func, not_, select

from assetflow.ledger.read.pruning import (
    BEFORE,
    Pruned,
    goes_with_its_events,
    goes_without_events,
    is_over_backfill,
    is_over_change,
    is_over_deadline,
    is_over_run,
    is_prunable,
)
from assetflow.ledger.sql.backfill_tables import BACKFILL, BACKFILL_EDGE, BACKFILL_TARGET
from assetflow.ledger.sql.freshness_tables import KEPT_RUN, POLICY_CHANGE
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.tables import DECISION, EVENT, EVENT_ALIAS, LEDGER, MISSED_DEADLINE, RECEIPT, REFUSED
from assetflow.ledger.write.prune_versions import prune_versions

# The number of events in one transaction, for which other writers wait.
CHUNK = 500
# The number of other rows of one table in one transaction: nothing else is looked at for each of them.
ROWS = 5_000

_IN_CHUNK = select(EVENT.c.sequence).where(
    EVENT.c.sequence > bindparam("after"), EVENT.c.sequence <= bindparam("upto"), is_prunable(EVENT)
)
_OLD_BACKFILLS = select(BACKFILL.c.number).where(is_over_backfill(BACKFILL))
_WITHOUT_EVENTS = and_(
    goes_without_events(DECISION),
    not_(exists().where(RECEIPT.c.decision == DECISION.c.number, RECEIPT.c.decision.is_not(None))),
)
_OF_BACKFILL = (
    (BACKFILL_EDGE, BACKFILL_EDGE.c.backfill),
    (BACKFILL_TARGET, BACKFILL_TARGET.c.backfill),
    (BACKFILL, BACKFILL.c.number),
)


@dataclass(frozen=True)
class PruneStep:
    """One step of pruning.

    Attributes:
        upto: the sequence of the last event of the chunk; `None` if no event after it is old.
    """

    pruned: Pruned
    upto: int | None


def prune_chunk(connection: Connection, before: datetime, after: int) -> PruneStep:
    """Remove what can be pruned from the chunk of events after a sequence."""
    # On Postgres, writers wait for each other here.
    connection.execute(select(LEDGER.c.number).with_for_update())
    upto = _end_of_chunk(connection, before, after)
    if upto is None:
        return _remove_without_events(connection, before, after)
    range_ = {"before": before, "after": after, "upto": upto}
    return PruneStep(_remove(connection, list(connection.scalars(_IN_CHUNK, range_)), before), upto)


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


def _remove_without_events(connection: Connection, before: datetime, after: int) -> PruneStep:
    """Remove what has no events, some rows of each table at a time; `upto` is `after` while more is left."""
    pruned = Pruned(
        decisions=_remove_rows(connection, DECISION, _WITHOUT_EVENTS, before),
        refused=_remove_rows(connection, REFUSED, REFUSED.c.at < BEFORE, before),
        runs=_remove_rows(connection, KEPT_RUN, is_over_run(KEPT_RUN), before),
        deadlines=_remove_rows(connection, MISSED_DEADLINE, is_over_deadline(MISSED_DEADLINE), before),
        changes=_remove_rows(connection, POLICY_CHANGE, is_over_change(POLICY_CHANGE), before),
    )
    if ROWS in astuple(pruned):
        return PruneStep(pruned, after)
    prune_versions(connection, before)
    _remove_backfills(connection, before)
    return PruneStep(pruned, None)


def _remove_rows(connection: Connection, table: Table, is_over: ColumnElement[bool], before: datetime) -> int:
    (key,) = table.primary_key.columns
    some = select(key).where(is_over).limit(ROWS)
    return connection.execute(delete(table).where(key.in_(some)), {"before": before}).rowcount


def _remove_backfills(connection: Connection, before: datetime) -> None:
    """Remove the backfills that ended before, and those that never began."""
    old = list(connection.scalars(_OLD_BACKFILLS, {"before": before}))
    for table, number in _OF_BACKFILL if old else ():
        connection.execute(delete(table).where(in_values(number, "numbers")), {"numbers": old})
