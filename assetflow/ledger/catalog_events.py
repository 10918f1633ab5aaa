"""Pages of events with where they came from and the runs that consumed them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import eq, ge, gt, le, lt
from typing import Any
from uuid import UUID

from sqlalchemy import Column, ColumnElement, func, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Text

from assetflow.core.events import AssetEvent
from assetflow.ledger.among import among
from assetflow.ledger.catalog import Order, Reads, begins_with
from assetflow.ledger.rows import EVENT_COLUMNS, event_from_row, key_from_column
from assetflow.ledger.tables import ASSET, CONSUMER, DECISION, EVENT, RECEIPT


class text_at(FunctionElement[Any]):  # noqa: N801 (it reads as a function)
    """The text at a place in a column of JSON text: `text_at(column, "flow_run", "name")`."""

    inherit_cache = False
    type = Text()

    def __init__(self, column: Column[Any], *path: str) -> None:
        self.path = path
        super().__init__(column)


@compiles(text_at, "sqlite")
def _on_sqlite(element: text_at, compiler: SQLCompiler, **kw: Any) -> str:
    return f"json_extract({compiler.process(element.clauses, **kw)}, '$.{'.'.join(element.path)}')"


@compiles(text_at, "postgresql")
def _on_postgres(element: text_at, compiler: SQLCompiler, **kw: Any) -> str:
    return f"(({compiler.process(element.clauses, **kw)})::json #>> '{{{','.join(element.path)}}}')"


_FLOW = text_at(EVENT.c.origin, "flow_run", "flow_name")
_DEPLOYMENT = text_at(EVENT.c.origin, "flow_run", "deployment_name")
_TASK = text_at(EVENT.c.origin, "task_run", "name")
_SOURCE = _FLOW + func.coalesce("." + _DEPLOYMENT, "")
_ORDER: dict[str, Any] = {
    "timestamp": EVENT.c.occurred,
    "id": EVENT.c.sequence,
    "source_task_id": _TASK,
    "source_dag_id": _SOURCE,
    "source_run_id": EVENT.c.flow_run_id,
}


@dataclass(frozen=True)
class EventFilter:
    """Which events; what is none or empty does not matter.

    Attributes:
        source: made by a run of this deployment, `flow.deployment`, or of this flow without one.
        task: made by this task, or by this task run.
        name, name_prefix: texts of which one is in, or begins, the name that the asset was recorded under.
        gte, gt, lte, lt: when it occurred, UTC.
    """

    uri: str | None = None
    source: str | None = None
    task: str | None = None
    flow_run_id: UUID | None = None
    name: Sequence[str] = ()
    name_prefix: Sequence[str] = ()
    gte: datetime | None = None
    gt: datetime | None = None
    lte: datetime | None = None
    lt: datetime | None = None


@dataclass(frozen=True)
class ConsumedBy:
    """A decision that consumed an event; `newest` is the sequence of the newest event that it consumed."""

    decision: UUID
    consumer_name: str
    target_key: str | None
    made: datetime
    status: str
    flow_run_id: UUID | None
    launched: datetime | None
    ended: datetime | None
    run_state: str
    newest: int


@dataclass(frozen=True)
class ConsumedAsset:
    """An asset of which a decision consumed events: how many."""

    uri: str
    name: str
    events: int


class EventCatalog:
    """Lists of events from a ledger. All raise `LedgerError` when it cannot be read."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def page(
        self, query: EventFilter, order: Order = (("timestamp", False),), *, limit: int = 100, offset: int = 0
    ) -> tuple[list[tuple[AssetEvent, int]], int]:
        """A page of events, each with its asset's number, and how many there are in all.

        Parameters:
            order: `timestamp`, `id`, `source_task_id`, `source_dag_id`, `source_run_id`, each with whether it descends.
        """
        where = _conditions(query)
        columns = [column.desc() if down else column for column, down in ((_ORDER[name], down) for name, down in order)]
        last = EVENT.c.sequence.desc() if order and order[0][1] else EVENT.c.sequence
        rows = select(*EVENT_COLUMNS).where(*where).order_by(*columns, last).limit(limit).offset(offset)
        with self._reads() as connection:
            total = connection.execute(select(func.count()).select_from(EVENT).where(*where)).scalar_one()
            events = [event_from_row(row) for row in connection.execute(rows)]
            numbers = select(ASSET.c.uri, ASSET.c.id).where(among(ASSET.c.uri, "uris"))
            of = {row[0]: row[1] for row in connection.execute(numbers, {"uris": {event.uri for event in events}})}
        return [(event, of[event.uri]) for event in events], total

    def consumed_by(self, sequences: Collection[int]) -> dict[int, list[ConsumedBy]]:
        """The decisions that consumed these events, by the events' sequences."""
        with self._reads() as connection:
            found: defaultdict[int, list[ConsumedBy]] = defaultdict(list)
            for row in connection.execute(_CONSUMED, {"sequences": list(sequences)}):
                sequence, decision, name, key, *rest = row
                found[sequence].append(ConsumedBy(decision, name, key_from_column(key), *rest))
        return found

    def receipts_of(self, sequences: Collection[int]) -> dict[int, dict[str, int]]:
        """How many receipts of each status these events have, by the events' sequences."""
        found: defaultdict[int, dict[str, int]] = defaultdict(dict)
        with self._reads() as connection:
            for sequence, status, number in connection.execute(_RECEIPTS, {"sequences": list(sequences)}):
                found[sequence][status] = number
        return found

    def consumed_of(self, decisions: Collection[int]) -> dict[int, list[ConsumedAsset]]:
        """What decisions consumed, asset by asset, by the decisions' numbers."""
        with self._reads() as connection:
            found: defaultdict[int, list[ConsumedAsset]] = defaultdict(list)
            for number, uri, name, events in connection.execute(_CONSUMED_ASSETS, {"decisions": list(decisions)}):
                found[number].append(ConsumedAsset(uri, name, events))
        return found


_CONSUMED_ASSETS = (
    select(RECEIPT.c.decision, EVENT.c.uri, func.max(EVENT.c.asset_name), func.count())
    .join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence)
    .where(among(RECEIPT.c.decision, "decisions"), RECEIPT.c.decision.is_not(None))
    .group_by(RECEIPT.c.decision, EVENT.c.uri)
    .order_by(RECEIPT.c.decision, func.min(EVENT.c.sequence))
)
_RECEIPTS = (
    select(RECEIPT.c.sequence, RECEIPT.c.status, func.count())
    .where(among(RECEIPT.c.sequence, "sequences"))
    .group_by(RECEIPT.c.sequence, RECEIPT.c.status)
    .order_by(RECEIPT.c.sequence, RECEIPT.c.status)
)
_OTHER = RECEIPT.alias("other")
_CONSUMED = (
    select(
        RECEIPT.c.sequence,
        DECISION.c.id,
        CONSUMER.c.name,
        DECISION.c.target_key,
        DECISION.c.made,
        DECISION.c.status,
        DECISION.c.flow_run_id,
        DECISION.c.launched,
        DECISION.c.ended,
        DECISION.c.run_state,
        select(func.max(_OTHER.c.sequence))
        .where(_OTHER.c.decision == RECEIPT.c.decision, _OTHER.c.decision.is_not(None))
        .scalar_subquery(),
    )
    .select_from(
        RECEIPT.join(DECISION, DECISION.c.number == RECEIPT.c.decision).join(
            CONSUMER, CONSUMER.c.id == DECISION.c.consumer
        )
    )
    .where(among(RECEIPT.c.sequence, "sequences"))
    .order_by(RECEIPT.c.sequence, DECISION.c.number)
)


def _conditions(query: EventFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if query.uri is not None:
        found.append(EVENT.c.uri == query.uri)
    if query.flow_run_id is not None:
        found.append(EVENT.c.flow_run_id == query.flow_run_id)
    if query.source is not None:
        found.append(eq(_SOURCE, query.source))
    if query.task is not None:
        # Prefect names a task run by its task, a hyphen and three characters.
        found.append(or_(eq(_TASK, query.task), func.substr(_TASK, 1, func.length(_TASK) - 4) == query.task))
    if query.name:
        found.append(or_(*(EVENT.c.asset_name.ilike(f"%{text}%", escape="\\") for text in query.name)))
    if query.name_prefix:
        found.append(or_(*(begins_with(EVENT.c.asset_name, text) for text in query.name_prefix)))
    bounds: Sequence[tuple[Any, datetime | None]] = ((ge, query.gte), (gt, query.gt), (le, query.lte), (lt, query.lt))
    found += [compare(EVENT.c.occurred, moment) for compare, moment in bounds if moment is not None]
    return found
