"""Remove what is old and no longer needed from a ledger, chunk by chunk; `read.pruning` says what that is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, bindparam, delete, exists, func, not_, select

from assetflow.ledger.read.pruning import BEFORE, Pruned, goes_with_its_events, is_prunable
from assetflow.ledger.sql.freshness_tables import ITEM, ITEM_VERSION
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.tables import DECISION, EVENT, EVENT_ALIAS, LEDGER, RECEIPT, REFUSED

# The number of events in one transaction, for which other writers wait.
CHUNK = 500

_IN_CHUNK = select(EVENT.c.sequence).where(
    EVENT.c.sequence > bindparam("after"), EVENT.c.sequence <= bindparam("upto"), is_prunable(EVENT)
)
_URIS = select(EVENT.c.uri).where(in_values(EVENT.c.sequence, "sequences")).distinct()
_HAS_VERSIONS = select(exists(select(ITEM.c.uri)))
_IS_NEWEST = exists().where(
    ITEM.c.uri == ITEM_VERSION.c.uri,
    ITEM.c.partition_key == ITEM_VERSION.c.partition_key,
    ITEM.c.sequence == ITEM_VERSION.c.sequence,
)
_OLD_VERSIONS = delete(ITEM_VERSION).where(
    ITEM_VERSION.c.uri == bindparam("of_uri"), in_values(ITEM_VERSION.c.sequence, "sequences"), not_(_IS_NEWEST)
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
    _remove_versions(connection, sequences)
    connection.execute(delete(EVENT_ALIAS).where(in_values(EVENT_ALIAS.c.sequence, "sequences")), given)
    receipts = connection.execute(delete(RECEIPT).where(in_values(RECEIPT.c.sequence, "sequences")), given).rowcount
    events = connection.execute(delete(EVENT).where(in_values(EVENT.c.sequence, "sequences")), given).rowcount
    left = select(RECEIPT.c.sequence).where(RECEIPT.c.decision == DECISION.c.number)
    empty = and_(in_values(DECISION.c.number, "numbers"), goes_with_its_events(DECISION), not_(exists(left)))
    gone = connection.execute(delete(DECISION).where(empty), {"numbers": decisions, "before": before}).rowcount
    return Pruned(events, receipts, gone)


def _remove_versions(connection: Connection, sequences: list[int]) -> None:
    """Remove the versions of these events that are not the newest ones of their items, which stay."""
    if not connection.scalar(_HAS_VERSIONS):
        return
    given = {"sequences": sequences}
    for uri in connection.scalars(_URIS, given).all():
        connection.execute(_OLD_VERSIONS, {"of_uri": uri, "sequences": sequences})


def _remove_refused(connection: Connection, before: datetime) -> int:
    return connection.execute(delete(REFUSED).where(REFUSED.c.at < BEFORE), {"before": before}).rowcount
