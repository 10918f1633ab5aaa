"""The questions that the reader asks, each one or a few statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from operator import eq, ge, gt, itemgetter, le, lt
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, func, literal_column, select

from assetflow.core.events import AssetEvent, Recording
from assetflow.ledger.among import among
from assetflow.ledger.records import (
    Activity,
    AssetRecord,
    ConsumerRecord,
    DecisionRecord,
    DecisionStatus,
    Edge,
    EventQuery,
    ReceiptRecord,
    RefusedRecord,
    Status,
)
from assetflow.ledger.roster import CONSUMER_COLUMNS, consumer_from_row
from assetflow.ledger.rows import (
    EVENT_COLUMNS,
    RECEIPT_COLUMNS,
    RECEIPTS,
    event_from_row,
    key_from_column,
    receipt_from_row,
)
from assetflow.ledger.tables import (
    ALIAS_LINK,
    ASSET,
    ASSET_NAME,
    CONSUMER,
    DECISION,
    EDGE,
    EVENT,
    EVENT_ALIAS,
    LEDGER,
    RECEIPT,
    REFUSED,
)

_DECISION_COLUMNS = (
    DECISION.c.number,
    DECISION.c.id,
    DECISION.c.consumer,
    CONSUMER.c.name,
    CONSUMER.c.automation_id,
    DECISION.c.deployment_id,
    DECISION.c.target_key,
    DECISION.c.made,
    DECISION.c.kind,
    DECISION.c.status,
    DECISION.c.flow_run_id,
    DECISION.c.launched,
    DECISION.c.ended,
    DECISION.c.attempts,
    DECISION.c.error,
    DECISION.c.run_state,
)
DECISIONS = select(*_DECISION_COLUMNS).select_from(DECISION.join(CONSUMER, CONSUMER.c.id == DECISION.c.consumer))
_UNDELIVERABLE: ColumnElement[str] = literal_column("'undeliverable'")
CONSUMERS = select(
    *CONSUMER_COLUMNS, CONSUMER.c.flow_id, CONSUMER.c.automation_id, CONSUMER.c.since, CONSUMER.c.removed_at
)


def status(connection: Connection) -> Status:
    last_event, last_decision = connection.execute(select(LEDGER.c.last_event, LEDGER.c.last_decision)).one()
    open_ones = select(DECISION.c.status, func.count(), func.min(DECISION.c.made)).where(DECISION.c.ended.is_(None))
    found = {name: (count, made) for name, count, made in connection.execute(open_ones.group_by(DECISION.c.status))}
    waiting, oldest = found.get("waiting", (0, None))
    return Status(
        assets=_count(connection, select(func.count()).select_from(ASSET)),
        consumers=_count(connection, select(func.count()).select_from(CONSUMER).where(CONSUMER.c.removed_at.is_(None))),
        last_event=last_event,
        last_decision=last_decision,
        waiting=waiting,
        running=found.get("launched", (0, None))[0],
        undeliverable=_count(connection, select(func.count()).where(DECISION.c.status == _UNDELIVERABLE)),
        refused=_count(connection, select(func.count()).select_from(REFUSED)),
        oldest_waiting=oldest,
    )


def assets(connection: Connection) -> list[AssetRecord]:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for uri, name in connection.execute(select(ASSET_NAME.c.uri, ASSET_NAME.c.name)):
        names[uri].append(name)
    aliases: defaultdict[str, list[str]] = defaultdict(list)
    for uri, alias in connection.execute(select(ALIAS_LINK.c.uri, ALIAS_LINK.c.alias)):
        aliases[uri].append(alias)
    columns = (ASSET.c.id, ASSET.c.uri, ASSET.c.group, ASSET.c.extra, ASSET.c.first_seen)
    found = [
        AssetRecord(number, uri, group, extra, seen, tuple(sorted(names[uri])), tuple(sorted(aliases[uri])))
        for number, uri, group, extra, seen in connection.execute(select(*columns))
    ]
    return sorted(found, key=lambda asset: asset.uri)


def owner_of(connection: Connection, name: str) -> str | None:
    return connection.scalar(select(ASSET_NAME.c.uri).where(ASSET_NAME.c.name == name))


def events(
    connection: Connection, where: EventQuery, newest_first: bool, limit: int | None, offset: int
) -> list[AssetEvent]:
    place = place_of(where)
    query: Any = _matching(select(*EVENT_COLUMNS), where).order_by(place.desc() if newest_first else place)
    return [event_from_row(row) for row in connection.execute(query.limit(limit).offset(offset or None))]


def count_events(connection: Connection, where: EventQuery) -> int:
    return _count(connection, _matching(select(func.count()).select_from(EVENT), where))


def recordings(connection: Connection) -> list[Recording]:
    """The events by the recording that they came in: a recording is written whole, so its sequences are neighbours."""
    rows = connection.execute(select(*EVENT_COLUMNS, EVENT.c.recording).order_by(EVENT.c.sequence))
    groups = groupby(rows, itemgetter(-1))
    return [Recording(number, tuple(event_from_row(row) for row in group)) for number, group in groups]


def place_of(where: EventQuery) -> Any:
    """The column that gives the order: that of the index which finds the events."""
    return EVENT.c.sequence if where.alias is None else EVENT_ALIAS.c.sequence


def _matching(query: Any, where: EventQuery) -> Any:
    place = place_of(where)
    if where.alias is not None:
        query = query.join(EVENT_ALIAS, EVENT_ALIAS.c.sequence == EVENT.c.sequence)
        query = query.where(EVENT_ALIAS.c.alias == where.alias)
    for column, compare, value in (
        (EVENT.c.uri, eq, where.uri),
        (EVENT.c.occurred, gt, where.after),
        (EVENT.c.occurred, lt, where.before),
        (place, ge, where.from_sequence),
        (place, le, where.to_sequence),
        (EVENT.c.partition_key, eq, where.partition_key),
        (EVENT.c.flow_run_id, eq, where.flow_run_id),
    ):
        if value is not None:
            query = query.where(compare(column, value))
    return query


def activity(connection: Connection) -> dict[str, Activity]:
    newest = select(EVENT.c.uri, func.count().label("count"), func.max(EVENT.c.sequence).label("newest"))
    totals = newest.group_by(EVENT.c.uri).subquery()
    query = select(totals.c.uri, totals.c.count, EVENT.c.occurred).join(EVENT, EVENT.c.sequence == totals.c.newest)
    return {uri: Activity(count, occurred) for uri, count, occurred in connection.execute(query)}


def event(connection: Connection, event_id: UUID) -> AssetEvent | None:
    row = connection.execute(select(*EVENT_COLUMNS).where(EVENT.c.id == event_id)).one_or_none()
    return None if row is None else event_from_row(row)


def known_events(connection: Connection, ids: Iterable[UUID]) -> set[UUID]:
    wanted = {"ids": list(ids)}
    recorded = connection.scalars(select(EVENT.c.id).where(among(EVENT.c.id, "ids")), wanted)
    return {*recorded, *connection.scalars(select(REFUSED.c.id).where(among(REFUSED.c.id, "ids")), wanted)}


def newest_sequences(connection: Connection, uris: Iterable[str]) -> dict[str, int]:
    newest = select(func.max(EVENT.c.sequence))
    found = {uri: connection.scalar(newest.where(EVENT.c.uri == uri)) for uri in uris}
    return {uri: sequence for uri, sequence in found.items() if sequence is not None}


def receipts(connection: Connection, event_id: UUID, limit: int | None, offset: int) -> list[ReceiptRecord]:
    query = select(*RECEIPT_COLUMNS, CONSUMER.c.name, RECEIPT.c.at).select_from(
        RECEIPTS.outerjoin(CONSUMER, CONSUMER.c.id == RECEIPT.c.consumer)
    )
    query = query.where(EVENT.c.id == event_id).order_by(RECEIPT.c.consumer, RECEIPT.c.target_key)
    query = query.limit(limit).offset(offset or None)
    return [ReceiptRecord(receipt_from_row(row), row[-2], row[-1]) for row in connection.execute(query)]


def refused(connection: Connection, limit: int) -> list[RefusedRecord]:
    columns = (
        REFUSED.c.number,
        REFUSED.c.id,
        REFUSED.c.payload,
        REFUSED.c.reason,
        REFUSED.c.rule,
        REFUSED.c.source,
        REFUSED.c.at,
    )
    query = select(*columns).order_by(REFUSED.c.number.desc()).limit(limit)
    return [RefusedRecord(*row) for row in connection.execute(query)]


def consumers(connection: Connection, removed: bool) -> list[ConsumerRecord]:
    condition = CONSUMER.c.removed_at.is_not(None) if removed else CONSUMER.c.removed_at.is_(None)
    return [record_from_row(row) for row in connection.execute(CONSUMERS.where(condition).order_by(CONSUMER.c.id))]


def consumers_page(
    connection: Connection, after: int, limit: int, search: str, paused: bool | None
) -> list[ConsumerRecord]:
    query = CONSUMERS.where(CONSUMER.c.removed_at.is_(None), CONSUMER.c.id > after)
    if search:
        query = query.where(CONSUMER.c.name.icontains(search, autoescape=True))
    if paused is not None:
        query = query.where(CONSUMER.c.paused == paused)
    return [record_from_row(row) for row in connection.execute(query.order_by(CONSUMER.c.id).limit(limit))]


def consumer_numbered(connection: Connection, number: int) -> ConsumerRecord | None:
    query = CONSUMERS.where(CONSUMER.c.id == number, CONSUMER.c.removed_at.is_(None))
    row = connection.execute(query).one_or_none()
    return None if row is None else record_from_row(row)


def consumer(connection: Connection, name: str) -> ConsumerRecord | None:
    query = CONSUMERS.where(CONSUMER.c.name == name, CONSUMER.c.removed_at.is_(None))
    row = connection.execute(query).one_or_none()
    return None if row is None else record_from_row(row)


def record_from_row(row: Sequence[Any]) -> ConsumerRecord:
    """The consumer in a row of `CONSUMERS`."""
    flow_id, automation_id, since, removed_at = row[6:10]
    return ConsumerRecord(consumer_from_row(row), flow_id, row[3], automation_id, since, removed_at)


def edges(connection: Connection) -> list[Edge]:
    columns = (EDGE.c.deployment_id, EDGE.c.name, EDGE.c.direction, EDGE.c.kind, EDGE.c.value, EDGE.c.label)
    return [Edge(*row) for row in connection.execute(select(*columns))]


def decisions(
    connection: Connection, consumer: int | None, status: DecisionStatus | None, before: int | None, limit: int
) -> list[DecisionRecord]:
    query = DECISIONS.order_by(DECISION.c.number.desc()).limit(limit)
    if consumer is not None:
        query = query.where(DECISION.c.consumer == consumer)
    if before is not None:
        query = query.where(DECISION.c.number < before)
    if status in ("waiting", "launched"):
        query = query.where(DECISION.c.ended.is_(None), DECISION.c.status == status)
    elif status is not None:
        query = query.where(DECISION.c.status == literal_column(f"'{status}'"))
    return [decision_from_row(row) for row in connection.execute(query)]


def in_progress(
    connection: Connection, status: DecisionStatus, limit: int | None, besides: Collection[int] = ()
) -> list[DecisionRecord]:
    query = DECISIONS.where(DECISION.c.ended.is_(None), DECISION.c.status == status)
    if besides:
        query = query.where(DECISION.c.consumer.not_in(besides))
    return [decision_from_row(row) for row in connection.execute(query.order_by(DECISION.c.number).limit(limit))]


def decision(connection: Connection, decision_id: UUID) -> DecisionRecord | None:
    row = connection.execute(DECISIONS.where(DECISION.c.id == decision_id)).one_or_none()
    return None if row is None else decision_from_row(row)


def decisions_with(connection: Connection, ids: Iterable[UUID]) -> list[DecisionRecord]:
    query = DECISIONS.where(among(DECISION.c.id, "ids"))
    return [decision_from_row(row) for row in connection.execute(query, {"ids": list(ids)})]


def decision_of_run(connection: Connection, flow_run_id: UUID) -> DecisionRecord | None:
    row = connection.execute(DECISIONS.where(DECISION.c.flow_run_id == flow_run_id)).first()
    return None if row is None else decision_from_row(row)


def decision_from_row(row: Sequence[Any]) -> DecisionRecord:
    """The decision in a row of `DECISIONS`."""
    number, decision_id, consumer, name, automation_id, deployment_id, key, *rest = row
    return DecisionRecord(
        number, decision_id, consumer, name, automation_id, deployment_id, key_from_column(key), *rest
    )


def events_of(connection: Connection, decisions: Sequence[int]) -> dict[int, tuple[AssetEvent, ...]]:
    """The events that decisions consumed, by the decisions' numbers."""
    found: dict[int, list[AssetEvent]] = {number: [] for number in decisions}
    query = select(*EVENT_COLUMNS, RECEIPT.c.decision).join(RECEIPT, RECEIPT.c.sequence == EVENT.c.sequence)
    consumed = query.where(among(RECEIPT.c.decision, "numbers"), RECEIPT.c.decision.is_not(None))
    for row in connection.execute(consumed.order_by(RECEIPT.c.sequence), {"numbers": list(decisions)}).all():
        found[row[-1]].append(event_from_row(row))
    return {number: tuple(found[number]) for number in decisions}


def _count(connection: Connection, query: Select[Any]) -> int:
    return connection.execute(query).scalar_one()
