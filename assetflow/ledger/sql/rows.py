"""Events, receipts and consumers as rows, and back."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, cast
from uuid import UUID

from sqlalchemy import ColumnElement, literal_column

from assetflow.core.rules.state.kept import Kept
from assetflow.core.rules.state.names import weight_of_options
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer, Receipt
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import declaration_from_text
from assetflow.core.wire.events import origin_from_json, origin_to_json
from assetflow.ledger.sql.tables import CONSUMER, DECISION, EVENT, NO_CONSUMER, NO_KEY, RECEIPT

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
)
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
        asset.name,
        asset.group,
        asset.extra,
    )


def event_from_row(row: Sequence[Any]) -> AssetEvent:
    """Return the event in a row that begins with `EVENT_COLUMNS`."""
    sequence, number, uri, name, group, asset_extra, occurred, recorded, origin, extra, key, aliases = row[:12]
    metrics, code_version, data_version, inputs = row[12:16]
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
        target_key=key_from_column(target_key),
        decision=decision,
        by=by,
        why=why,
        error=error,
    )


def consumer_from_row(row: Sequence[Any]) -> Consumer:
    """Return the consumer in a row that begins with `CONSUMER_COLUMNS`."""
    number, name, deployment_id, text, paused, held, deployed = row[:7]
    return Consumer(number, name, deployment_id, options_from_text(text), paused, held, deployed)


def key_to_column(key: str | None) -> str:
    return NO_KEY if key is None else key


def key_from_column(key: str) -> str | None:
    return None if key == NO_KEY else key
