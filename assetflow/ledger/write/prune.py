"""Remove what is old and no longer needed from a ledger, chunk by chunk; `read.pruning` says what that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from datetime import datetime

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Table,
    and_,
    bindparam,
    case,
    cast,
    delete,
    exists,
    func,
    not_,
    or_,
    select,
)

from assetflow.core.freshness.graph import DataGraph
from assetflow.core.rules.state import State
from assetflow.ledger.fold.source import LedgerSource
from assetflow.ledger.read.pruning import (
    GOES_WITH_ITS_EVENTS,
    IS_OVER_BACKFILL,
    IS_PRUNABLE,
    WITHOUT_EVENTS,
    Pruned,
    goes_without_events,
    is_old,
)
from assetflow.ledger.read.queues import LAST
from assetflow.ledger.sql.bulk import in_values, number_at, text_at
from assetflow.ledger.sql.freshness_tables import (
    BACKFILL,
    BACKFILL_EDGE,
    BACKFILL_TARGET,
    DATA_FLOW,
    ITEM,
    ITEM_VERSION,
    KEPT_RUN,
    TARGET,
)
from assetflow.ledger.sql.tables import DECISION, EVENT, EVENT_ALIAS, LEDGER, RECEIPT

_V = ITEM_VERSION.c
_COMPARES = select(exists(select(DATA_FLOW.c.consumer)))
_URIS = select(ITEM.c.uri).distinct()
# An update that does not say what was read was made from what was there when it was recorded (8.5).
_READ_BY_UPDATES = select(func.min(case((_V.pins.is_(None), _V.sequence), else_=number_at(_V.pins, "of_uri")))).where(
    _V.uri == bindparam("output")
)
_TRIED_BY_TARGETS = [
    select(func.min(cast(text_at(column, "sequence"), BigInteger))).where(in_values(TARGET.c.consumer, "consumers"))
    for column in (TARGET.c.tried, TARGET.c.waived)
]
_TRIED_BY_RUNS = select(func.min(cast(text_at(KEPT_RUN.c.tried, "sequence"), BigInteger))).where(
    in_values(KEPT_RUN.c.consumer, "consumers"), KEPT_RUN.c.ended.is_(None)
)
_LATER = ITEM_VERSION.alias("later")
_SAME_ITEM = and_(_LATER.c.uri == _V.uri, _LATER.c.partition_key == _V.partition_key, _LATER.c.sequence > _V.sequence)
# An output is compared with the newest update of its maker, or with a later one (8.5).
_IS_COMPARED_WITH = or_(_LATER.c.pins.is_(None), _LATER.c.consumer == bindparam("maker"))
_OLD = and_(
    _V.uri == bindparam("of_uri"),
    is_old(ITEM_VERSION, EVENT, "recorded", "sequence"),
    exists().where(_SAME_ITEM, _LATER.c.sequence <= bindparam("floor")),
)
_OF_SOURCE = delete(ITEM_VERSION).where(_OLD)
_OF_OUTPUT = _OF_SOURCE.where(exists().where(_SAME_ITEM, _IS_COMPARED_WITH))


def prune_versions(connection: Connection, before: datetime) -> None:
    """Remove the versions that were recorded before a moment and that nothing compares any more."""
    if not connection.scalar(_COMPARES):
        return
    state = State(LedgerSource(connection))
    state.begin(LAST + 1)
    graph = state.freshness.graph
    for uri in _readers_first(connection, graph):
        maker, floor = graph.maker(uri), _read_from(connection, graph, uri)
        given = {"of_uri": uri, "floor": LAST if floor is None else floor, "before": before}
        if maker is None:
            connection.execute(_OF_SOURCE, given)
        else:
            connection.execute(_OF_OUTPUT, {**given, "maker": maker.id})


def _readers_first(connection: Connection, graph: DataGraph) -> Iterator[str]:
    """Yield all assets with versions, what reads an asset before it: what is removed there was not read any more."""
    left = dict.fromkeys(connection.scalars(_URIS))
    nodes = graph.parents_first([node.id for node in graph.all()])
    for node in reversed(nodes):
        for uri in node.outputs:
            if uri in left:
                del left[uri]
                yield uri
    yield from left


def _read_from(connection: Connection, graph: DataGraph, uri: str) -> int | None:
    """Return the earliest place in the ledger up to which an asset was read; `None` if nothing reads it."""
    readers = graph.readers(uri)
    outputs = {output for node in readers for output in node.outputs}.union(graph.earlier_outputs(uri))
    found = [connection.scalar(_READ_BY_UPDATES, {"output": output, "of_uri": uri}) for output in sorted(outputs)]
    consumers = [node.id for node in readers]
    found += [connection.scalar(query, {"consumers": consumers}) for query in (*_TRIED_BY_TARGETS, _TRIED_BY_RUNS)]
    return min((place for place in found if place is not None), default=None)


# The number of events in one transaction, for which other writers wait.
CHUNK = 500
# The number of other rows of one table in one transaction: nothing else is looked at for each of them.
ROWS = 5_000

_IN_CHUNK = select(EVENT.c.sequence).where(
    EVENT.c.sequence > bindparam("after"), EVENT.c.sequence <= bindparam("upto"), IS_PRUNABLE
)
_OLD_BACKFILLS = select(BACKFILL.c.number).where(IS_OVER_BACKFILL)
_WITHOUT_EVENTS = and_(
    goes_without_events(),
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
    empty = and_(in_values(DECISION.c.number, "numbers"), GOES_WITH_ITS_EVENTS, not_(exists(left)))
    gone = connection.execute(delete(DECISION).where(empty), {"numbers": decisions, "before": before}).rowcount
    return Pruned(events, receipts, gone)


def _remove_without_events(connection: Connection, before: datetime, after: int) -> PruneStep:
    """Remove what has no events, some rows of each table at a time; `upto` is `after` while more is left."""
    pruned = Pruned(
        decisions=_remove_rows(connection, DECISION, _WITHOUT_EVENTS, before),
        **{name: _remove_rows(connection, *of, before) for name, of in WITHOUT_EVENTS.items()},
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
