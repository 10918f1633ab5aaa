"""Remove versions of items that nothing was made from any more; what is stale, and how old data is, stays the same.

A version that was read says whether there is a newer one, and since when (contract 8.9, 8.12). So an item keeps the
version that was read at the earliest place in the ledger that an update, a run or a target still names, and all
versions after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import BigInteger, Connection, and_, bindparam, case, cast, delete, exists, func, or_, select

from assetflow.core.freshness.graph import DataGraph
from assetflow.core.rules.state import State
from assetflow.ledger.fold.source import LedgerSource
from assetflow.ledger.read.pruning import BEFORE
from assetflow.ledger.read.queues import LAST
from assetflow.ledger.sql.freshness_tables import DATA_FLOW, ITEM, ITEM_VERSION, KEPT_RUN, TARGET
from assetflow.ledger.sql.functions import in_values, number_at, text_at

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
    _V.recorded < BEFORE,
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
    outputs = {output for node in readers for output in node.outputs}
    found = [connection.scalar(_READ_BY_UPDATES, {"output": output, "of_uri": uri}) for output in sorted(outputs)]
    consumers = [node.id for node in readers]
    found += [connection.scalar(query, {"consumers": consumers}) for query in (*_TRIED_BY_TARGETS, _TRIED_BY_RUNS)]
    return min((place for place in found if place is not None), default=None)
