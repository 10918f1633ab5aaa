"""What the core knows as rows of the tables, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import chain, islice
from threading import Lock
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

from sqlalchemy import Column, ColumnElement, Table, func, literal_column, select

from assetflow.core.freshness.records import (
    Backfill,
    BackfillItem,
    Item,
    ItemUpdate,
    PolicyChange,
    PolicyRecord,
    Run,
    Target,
    TargetRecord,
)
from assetflow.core.kept import Kept
from assetflow.core.rules.state.changes import ConsumerClock, QueueClock
from assetflow.core.rules.state.names import weight_of_options
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer, MissedDeadline, Receipt
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import declaration_from_text
from assetflow.core.wire.events import origin_from_json, origin_to_json
from assetflow.ledger.sql.freshness_tables import (
    BACKFILL,
    BACKFILL_TARGET,
    ITEM_VERSION,
    KEPT_RUN,
    POLICY,
    POLICY_CHANGE,
    TARGET,
)
from assetflow.ledger.sql.tables import (
    ASSET_NAME,
    CONSUMER,
    CONSUMER_CLOCK,
    DECISION,
    EVENT,
    MISSED_DEADLINE,
    NO_CONSUMER,
    QUEUE_CLOCK,
    RECEIPT,
)

T = TypeVar("T")

LIMIT = 32 << 20
"""How many bytes of parsed options to remember; see `Kept`."""

_lock = Lock()
_parsed = Kept[str, ConsumerOptions](LIMIT, weight_of_options)


def options_from_text(text: str) -> ConsumerOptions:
    """Return the options in the text of a declaration. Any thread may call it."""
    with _lock:
        options = _parsed.find(text)
    if options is None:
        options = declaration_from_text(text, where="ledger").options
        with _lock:
            _parsed.keep(text, options)
            _parsed.grew(len(text))
            _parsed.renew()
    return options


# Part of the statement's text, not a parameter: otherwise SQLite does not use its partial indexes.
QUEUED: ColumnElement[str] = literal_column("'queued'")

EVENT_COLUMNS = (
    EVENT.c.sequence,
    EVENT.c.id,
    EVENT.c.uri,
    EVENT.c.asset_name,
    EVENT.c.asset_group,
    EVENT.c.asset_extra,
    EVENT.c.occurred,
    EVENT.c.recorded,
    EVENT.c.origin,
    EVENT.c.extra,
    EVENT.c.partition_key,
    EVENT.c.aliases,
    EVENT.c.metrics,
    EVENT.c.code_version,
    EVENT.c.data_version,
    EVENT.c.inputs,
    EVENT.c.checks,
)


def readable_name(uri: ColumnElement[str]) -> ColumnElement[str]:
    """Return what people call the asset with this URI: the first of its names, or else its URI. Contract 1.2."""
    named = select(func.min(ASSET_NAME.c.name)).where(ASSET_NAME.c.uri == uri, ASSET_NAME.c.name != uri)
    return func.coalesce(named.scalar_subquery(), uri)


SHOWN_EVENT = tuple(readable_name(EVENT.c.uri) if each is EVENT.c.asset_name else each for each in EVENT_COLUMNS)
"""The columns of an event for people: its asset has the name by which everybody calls it."""
STORED_EVENT = (
    EVENT.c.sequence,
    EVENT.c.id,
    EVENT.c.recording,
    EVENT.c.uri,
    EVENT.c.partition_key,
    EVENT.c.occurred,
    EVENT.c.recorded,
    EVENT.c.extra,
    EVENT.c.metrics,
    EVENT.c.aliases,
    EVENT.c.origin,
    EVENT.c.task_run_id,
    EVENT.c.flow_run_id,
    EVENT.c.code_version,
    EVENT.c.data_version,
    EVENT.c.inputs,
    EVENT.c.checks,
    EVENT.c.asset_name,
    EVENT.c.asset_group,
    EVENT.c.asset_extra,
)
CONSUMER_COLUMNS = (
    CONSUMER.c.id,
    CONSUMER.c.name,
    CONSUMER.c.deployment_id,
    CONSUMER.c.declaration,
    CONSUMER.c.paused,
    CONSUMER.c.held,
    CONSUMER.c.deployed,
    CONSUMER.c.switched_late,
)
RECEIPT_COLUMNS = (
    RECEIPT.c.sequence,
    RECEIPT.c.consumer,
    RECEIPT.c.target_key,
    RECEIPT.c.status,
    RECEIPT.c.by,
    RECEIPT.c.why,
    RECEIPT.c.error,
    DECISION.c.id.label("decision_id"),
    EVENT.c.uri,
)
RECEIPTS = RECEIPT.join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence).outerjoin(
    DECISION, DECISION.c.number == RECEIPT.c.decision
)


def event_to_row(event: AssetEvent, recording: UUID) -> tuple[Any, ...]:
    """Return an event that has its sequence as a row of `STORED_EVENT`."""
    asset, origin = event.asset, event.origin
    return (
        event.sequence,
        event.id,
        recording,
        asset.uri,
        event.partition_key,
        event.occurred,
        event.recorded,
        event.extra,
        event.metrics,
        event.aliases,
        origin_to_json(origin),
        None if origin.task_run is None else origin.task_run.id,
        None if origin.flow_run is None else origin.flow_run.id,
        event.code_version,
        event.data_version,
        event.inputs,
        event.checks,
        asset.name,
        asset.group,
        asset.extra,
    )


def event_from_row(row: Sequence[Any]) -> AssetEvent:
    """Return the event in a row that begins with `EVENT_COLUMNS`."""
    sequence, number, uri, name, group, asset_extra, occurred, recorded, origin, extra, key, aliases = row[:12]
    metrics, code_version, data_version, inputs, checks = row[12:17]
    return AssetEvent(
        id=number,
        asset=Asset.known(uri, name, group, asset_extra),
        occurred=occurred,
        origin=origin_from_json(origin),
        extra=extra,
        partition_key=key,
        aliases=tuple(aliases),
        metrics=metrics,
        code_version=code_version,
        data_version=data_version,
        inputs=inputs,
        checks=checks,
        sequence=sequence,
        recorded=recorded,
    )


def receipt_from_row(row: Sequence[Any]) -> Receipt:
    """Return the receipt in a row that begins with `RECEIPT_COLUMNS`."""
    sequence, consumer, target_key, status, by, why, error, decision, uri = row[:9]
    return Receipt(
        event=cast(int, sequence),
        uri=uri,
        consumer=None if consumer == NO_CONSUMER else consumer,
        status=status,
        target_key=target_key,
        decision=decision,
        by=by,
        why=why,
        error=error,
    )


def consumer_from_row(row: Sequence[Any]) -> Consumer:
    """Return the consumer in a row that begins with `CONSUMER_COLUMNS`."""
    number, name, deployment_id, text, *switches = row[: len(CONSUMER_COLUMNS)]
    return Consumer(number, name, deployment_id, options_from_text(text), *switches)


class Rows(Generic[T]):
    """The rows of the objects of a dataclass: one column for each field, which its name and table say.

    Parameters:
        elsewhere: the column of a field that has another name or table; for a field with parts, their class and a
            column for each.

    Attributes:
        columns: the columns in the order of the fields.
    """

    def __init__(self, kind: type[T], table: Table, **elsewhere: Column[Any] | tuple[Any, ...]) -> None:
        names = [each.name for each in fields(cast(Any, kind))]
        places = {name: elsewhere[name] if name in elsewhere else table.c[name] for name in names}
        split = {name: (found[0], len(found) - 1) for name, found in places.items() if isinstance(found, tuple)}
        self._kind = kind
        self._parts: dict[str, tuple[Any, int] | None] = {name: split.get(name) for name in places}
        found = (place[1:] if isinstance(place, tuple) else (place,) for place in places.values())
        self.columns: tuple[Column[Any], ...] = tuple(chain.from_iterable(found))

    def read(self, row: Sequence[Any]) -> T:
        """Return the object in a row that begins with `columns`."""
        values = iter(row)
        return self._kind(
            *(part[0](*islice(values, part[1])) if part else next(values) for part in self._parts.values())
        )

    def row(self, of: T) -> tuple[Any, ...]:
        """Return an object as a row of `columns`."""
        found = ((getattr(of, name), part) for name, part in self._parts.items())
        return tuple(chain.from_iterable(value if part else (value,) for value, part in found))


ITEM_UPDATES = Rows(ItemUpdate, ITEM_VERSION, item=(Item, ITEM_VERSION.c.uri, ITEM_VERSION.c.partition_key))
KEPT_RUNS = Rows(Run, KEPT_RUN, target=(Target, KEPT_RUN.c.consumer, KEPT_RUN.c.target_key))
TARGET_RECORDS = Rows(TargetRecord, TARGET)
POLICY_RECORDS = Rows(PolicyRecord, POLICY, policy=POLICY.c.declaration)
POLICY_CHANGES = Rows(PolicyChange, POLICY_CHANGE)
BACKFILLS = Rows(Backfill, BACKFILL, by=BACKFILL.c.made_by)
BACKFILL_ITEMS = Rows(
    BackfillItem, BACKFILL_TARGET, target=(Target, BACKFILL_TARGET.c.consumer, BACKFILL_TARGET.c.target_key)
)
CONSUMER_CLOCKS = Rows(ConsumerClock, CONSUMER_CLOCK)
QUEUE_CLOCKS = Rows(QueueClock, QUEUE_CLOCK)
MISSED_DEADLINES = Rows(MissedDeadline, MISSED_DEADLINE)
