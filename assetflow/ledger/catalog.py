"""Pages of assets, aliases, queues and partitions, as lists show them: a constant number of statements for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, String, and_, bindparam, func, literal, or_, select, union_all

from assetflow.ledger import queries
from assetflow.ledger.among import among
from assetflow.ledger.records import AssetRecord, ConsumerRecord
from assetflow.ledger.rows import QUEUED, key_to_column
from assetflow.ledger.tables import (
    ALIAS,
    ALIAS_LINK,
    ASSET,
    ASSET_NAME,
    CONSUMER,
    CONSUMER_TOKEN,
    EDGE,
    EVENT,
    PENDING,
    RECEIPT,
)

Reads = Callable[[], AbstractContextManager[Connection]]
Order = Sequence[tuple[str, bool]]

_NEWEST = select(func.max(EVENT.c.sequence)).where(EVENT.c.uri == ASSET.c.uri).scalar_subquery()
_OF_ASSET = and_(EDGE.c.kind == "uri", EDGE.c.value == ASSET.c.uri)
_NAME = func.coalesce(
    select(func.min(ASSET_NAME.c.name))
    .where(ASSET_NAME.c.uri == ASSET.c.uri, ASSET_NAME.c.name != ASSET.c.uri)
    .scalar_subquery(),
    select(func.min(EDGE.c.label)).where(_OF_ASSET).scalar_subquery(),
    ASSET.c.uri,
)
_LAST = EVENT.alias("last")
_UPDATED = func.coalesce(
    select(_LAST.c.recorded)
    .where(_LAST.c.uri == ASSET.c.uri)
    .order_by(_LAST.c.sequence.desc())
    .limit(1)
    .scalar_subquery(),
    ASSET.c.first_seen,
)
_ASSET_ORDER: dict[str, Any] = {
    "id": ASSET.c.id,
    "uri": ASSET.c.uri,
    "name": _NAME,
    "created_at": ASSET.c.first_seen,
    "updated_at": _UPDATED,
}


@dataclass(frozen=True)
class AssetQuery:
    """Which assets; what is none or empty does not matter.

    Attributes:
        name, uri: texts of which one is in the name or in the URI, in any case; `%` and `_` stand for other text.
        name_prefix, uri_prefix: texts of which one begins the name or the URI, case-sensitive.
        search: a text in the URI, in a name or in the group.
        group: of this group.
        uris: only these.
    """

    name: Sequence[str] = ()
    uri: Sequence[str] = ()
    name_prefix: Sequence[str] = ()
    uri_prefix: Sequence[str] = ()
    search: str = ""
    group: str | None = None
    uris: Collection[str] | None = None


@dataclass(frozen=True)
class ListedAsset:
    """An asset with its newest event.

    Attributes:
        name: its readable name; before it has one, the name that a deployed flow declares, or else its URI.
        last_event, last_time: the newest event's sequence, and when it occurred.
    """

    record: AssetRecord
    name: str
    last_event: int | None
    last_time: datetime | None
    updated: datetime


@dataclass(frozen=True)
class AssetUsers:
    """Who has to do with an asset.

    Attributes:
        scheduled: name of a consumer that runs on it to since when it is known.
        producers, readers: name to id of the deployments that declare to make it, and to read it.
    """

    scheduled: dict[str, datetime]
    producers: dict[str, UUID]
    readers: dict[str, UUID]


@dataclass(frozen=True)
class QueuedAsset:
    """An asset of which a plain consumer has events queued: how many, and when the oldest was recorded."""

    consumer: int
    consumer_name: str
    consumer_since: datetime
    uri: str
    asset: int
    events: int
    since: datetime


@dataclass(frozen=True)
class PartitionRecord:
    """A partition of an asset: how often it was updated, and when last."""

    key: str
    events: int
    last_event: int
    last_time: datetime


class Catalog:
    """Lists from a ledger. All raise `LedgerError` when it cannot be read."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def assets(
        self, query: AssetQuery | None = None, order: Order = (("id", False),), *, limit: int = 100, offset: int = 0
    ) -> tuple[list[ListedAsset], int]:
        """A page of assets, and how many there are in all.

        Parameters:
            order: `id`, `name`, `uri`, `created_at`, `updated_at`, each with whether it descends.
        """
        where = _conditions(query or AssetQuery())
        bound = {"uris": list(query.uris)} if query is not None and query.uris is not None else {}
        columns = [column.desc() if down else column for column, down in ((_ASSET_ORDER[name], x) for name, x in order)]
        with self._reads() as connection:
            total = connection.execute(select(func.count()).select_from(ASSET).where(*where), bound).scalar_one()
            page = _ASSETS.where(*where).order_by(*columns, ASSET.c.id).limit(limit).offset(offset)
            return _listed(connection, connection.execute(page, bound).all()), total

    def asset(self, *, number: int | None = None, uri: str | None = None) -> ListedAsset | None:
        """The asset with this number or this URI."""
        condition = ASSET.c.id == number if number is not None else ASSET.c.uri == uri
        with self._reads() as connection:
            found = _listed(connection, connection.execute(_ASSETS.where(condition)).all())
        return found[0] if found else None

    def numbers(self, uris: Collection[str]) -> dict[str, int]:
        """The numbers of these assets."""
        with self._reads() as connection:
            rows = connection.execute(select(ASSET.c.uri, ASSET.c.id).where(among(ASSET.c.uri, "uris")), {"uris": uris})
            return {row[0]: row[1] for row in rows}

    def known_names(self) -> list[str]:
        """All URIs and names, for suggestions."""
        with self._reads() as connection:
            names = {
                *connection.scalars(select(ASSET_NAME.c.name)),
                *connection.scalars(select(ASSET.c.uri)),
                *connection.scalars(select(EDGE.c.label).where(EDGE.c.label.is_not(None))),
            }
        return sorted(name for name in names if name is not None)

    def uri_called(self, text: str) -> str | None:
        """The URI of the asset with this URI, or else with this name, or else that deployed flows declare so."""
        with self._reads() as connection:
            return connection.scalars(_CALLED, {"text": text}).first()

    def groups(self) -> list[str]:
        """The groups of assets."""
        with self._reads() as connection:
            return sorted(connection.scalars(select(ASSET.c.group).distinct()))

    def aliases(self) -> list[str]:
        """The aliases that events came through, or that schedules and flows name."""
        declared = select(EDGE.c.value).where(EDGE.c.kind == "alias")
        wanted = select(CONSUMER_TOKEN.c.value).where(CONSUMER_TOKEN.c.kind == "alias")
        with self._reads() as connection:
            return sorted(
                {name for query in (select(ALIAS.c.name), declared, wanted) for name in connection.scalars(query)}
            )

    def uris_of_tokens(self, tokens: Collection[tuple[str, str]]) -> set[str]:
        """The URIs that these tokens mean: themselves, what a name belongs to, what is linked to an alias."""
        by_kind: defaultdict[str, list[str]] = defaultdict(list)
        for kind, value in tokens:
            by_kind[kind].append(value)
        owners = select(ASSET_NAME.c.uri).where(among(ASSET_NAME.c.name, "names"))
        links = select(ALIAS_LINK.c.uri).where(among(ALIAS_LINK.c.alias, "aliases"))
        with self._reads() as connection:
            named = connection.scalars(owners, {"names": by_kind["name"]}).all()
            linked = connection.scalars(links, {"aliases": by_kind["alias"]}).all()
        return {*by_kind["uri"], *named, *linked}

    def users_of(self, assets: Sequence[AssetRecord]) -> dict[str, AssetUsers]:
        """Who runs on these assets, makes and reads them, by URI."""
        uris: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for asset in assets:
            for kind, values in (("uri", (asset.uri,)), ("name", asset.names), ("alias", asset.aliases)):
                for value in values:
                    uris[kind, value].append(asset.uri)
        wanted = {"values": list({value for _, value in uris})}
        found = {asset.uri: AssetUsers({}, {}, {}) for asset in assets}
        with self._reads() as connection:
            for kind, value, name, since in connection.execute(_SCHEDULED, wanted):
                for uri in uris[kind, value]:
                    found[uri].scheduled[name] = since
            for kind, value, name, deployment, direction in connection.execute(_DECLARED, wanted):
                for uri in uris[kind, value]:
                    users = found[uri]
                    (users.producers if direction == "produces" else users.readers)[name] = deployment
        return found

    def tokens_of_flows(self, names: Collection[str]) -> set[tuple[str, str]]:
        """What deployments, each as `flow.deployment`, are scheduled on, produce and read."""
        wanted = {"names": list(names)}
        with self._reads() as connection:
            rows = [*connection.execute(_TOKENS_OF_CONSUMERS, wanted), *connection.execute(_TOKENS_OF_EDGES, wanted)]
        return {(row[0], row[1]) for row in rows}

    def queued(self, *, consumer: int | None = None, uri: str | None = None) -> list[QueuedAsset]:
        """What plain consumers have queued, by consumer and asset; pending partitions are listed elsewhere (3.7)."""
        query = _QUEUED_ASSETS
        if consumer is not None:
            query = query.where(PENDING.c.consumer == consumer)
        if uri is not None:
            query = query.where(PENDING.c.uri == uri)
        with self._reads() as connection:
            return [QueuedAsset(*row) for row in connection.execute(query.order_by(PENDING.c.consumer, ASSET.c.id))]

    def partitions(self, uri: str, *, after: str = "", limit: int = 100) -> list[PartitionRecord]:
        """The partitions of an asset by key, from the first one behind `after` on."""
        totals = (
            select(EVENT.c.partition_key, func.count().label("count"), func.max(EVENT.c.sequence).label("newest"))
            .where(EVENT.c.uri == uri, EVENT.c.partition_key > after)
            .group_by(EVENT.c.partition_key)
            .order_by(EVENT.c.partition_key)
            .limit(limit)
            .subquery()
        )
        query = select(totals, EVENT.c.occurred).join(EVENT, EVENT.c.sequence == totals.c.newest)
        with self._reads() as connection:
            return [PartitionRecord(*row) for row in connection.execute(query.order_by(totals.c.partition_key))]

    def consumers(
        self, search: str = "", *, paused: bool | None = None, limit: int = 100, offset: int = 0
    ) -> tuple[list[ConsumerRecord], int]:
        """A page of consumers by name, and how many there are in all; `search` is a part of the name."""
        where: list[ColumnElement[bool]] = [CONSUMER.c.removed_at.is_(None)]
        if search:
            where.append(CONSUMER.c.name.icontains(search, autoescape=True))
        if paused is not None:
            stopped = or_(CONSUMER.c.paused, CONSUMER.c.held)
            where.append(stopped if paused else ~stopped)
        with self._reads() as connection:
            total = connection.execute(select(func.count()).select_from(CONSUMER).where(*where)).scalar_one()
            page = queries.CONSUMERS.where(*where).order_by(CONSUMER.c.name).limit(limit).offset(offset)
            return [queries.record_from_row(row) for row in connection.execute(page)], total

    def keys(
        self,
        uri: str,
        *,
        since: str = "",
        after: str = "",
        until: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[str]:
        """The partition keys of an asset in the order of texts: from `since`, or behind `after`, up to `until`."""
        key = EVENT.c.partition_key
        query = select(key).where(EVENT.c.uri == uri, key > after, key >= since).distinct()
        if until is not None:
            query = query.where(key <= until)
        with self._reads() as connection:
            found = connection.scalars(query.order_by(key.desc() if newest_first else key).limit(limit)).all()
        return [each for each in found if each is not None]

    def count_keys(self, uri: str) -> int:
        """How many partition keys an asset has."""
        query = select(func.count(EVENT.c.partition_key.distinct()))
        with self._reads() as connection:
            return connection.execute(query.where(EVENT.c.uri == uri, EVENT.c.partition_key.is_not(None))).scalar_one()

    def consumer_number(self, text: str) -> int | None:
        """The id of the consumer that is called `flow/deployment`, `flow.deployment` or by its deployment's id."""
        meant: list[ColumnElement[bool]] = [CONSUMER.c.name == text, func.replace(CONSUMER.c.name, "/", ".") == text]
        with suppress(ValueError):
            meant.append(CONSUMER.c.deployment_id == UUID(text))
        query = select(CONSUMER.c.id).where(CONSUMER.c.removed_at.is_(None), or_(*meant)).order_by(CONSUMER.c.id)
        with self._reads() as connection:
            return connection.scalars(query).first()

    def consumer_names(self) -> list[str]:
        """The names of all consumers."""
        with self._reads() as connection:
            return sorted(connection.scalars(select(CONSUMER.c.name).where(CONSUMER.c.removed_at.is_(None))))


_ASSETS = select(
    ASSET.c.id,
    ASSET.c.uri,
    ASSET.c.group,
    ASSET.c.extra,
    ASSET.c.first_seen,
    _NAME.label("name"),
    _NEWEST.label("newest"),
)
_SCHEDULED = (
    select(CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value, CONSUMER.c.name, CONSUMER.c.since)
    .join(CONSUMER, CONSUMER.c.id == CONSUMER_TOKEN.c.consumer)
    .where(CONSUMER_TOKEN.c.kind.in_(("uri", "name", "alias")), among(CONSUMER_TOKEN.c.value, "values"))
    .order_by(CONSUMER.c.id)
)
_DECLARED = (
    select(EDGE.c.kind, EDGE.c.value, EDGE.c.name, EDGE.c.deployment_id, EDGE.c.direction)
    .where(EDGE.c.kind.in_(("uri", "name", "alias")), among(EDGE.c.value, "values"))
    .order_by(EDGE.c.name)
)
_TOKENS_OF_CONSUMERS = (
    select(CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
    .join(CONSUMER, CONSUMER.c.id == CONSUMER_TOKEN.c.consumer)
    .where(among(func.replace(CONSUMER.c.name, "/", "."), "names"))
)
_TEXT = bindparam("text", type_=String())
_CALLED = select(
    union_all(
        select(literal(1).label("place"), ASSET.c.uri.label("uri")).where(ASSET.c.uri == _TEXT),
        select(literal(2), ASSET_NAME.c.uri).where(ASSET_NAME.c.name == _TEXT),
        select(literal(3), EDGE.c.value).where(EDGE.c.label == _TEXT),
    )
    .order_by("place", "uri")
    .subquery()
    .c.uri
)
_TOKENS_OF_EDGES = select(EDGE.c.kind, EDGE.c.value).where(among(func.replace(EDGE.c.name, "/", "."), "names"))
_OLDEST = (
    select(func.min(EVENT.c.recorded))
    .select_from(RECEIPT.join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence))
    .where(
        RECEIPT.c.consumer == PENDING.c.consumer,
        RECEIPT.c.target_key == PENDING.c.target_key,
        RECEIPT.c.status == QUEUED,
        EVENT.c.uri == PENDING.c.uri,
    )
    .scalar_subquery()
)
_QUEUED_ASSETS = (
    select(PENDING.c.consumer, CONSUMER.c.name, CONSUMER.c.since, PENDING.c.uri, ASSET.c.id, PENDING.c.count, _OLDEST)
    .select_from(PENDING.join(CONSUMER, CONSUMER.c.id == PENDING.c.consumer).join(ASSET, ASSET.c.uri == PENDING.c.uri))
    .where(PENDING.c.target_key == key_to_column(None))
)


def _conditions(query: AssetQuery) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    for column, texts in ((_NAME, query.name), (ASSET.c.uri, query.uri)):
        if texts:
            found.append(or_(*(column.ilike(f"%{text}%", escape="\\") for text in texts)))
    for column, texts in ((_NAME, query.name_prefix), (ASSET.c.uri, query.uri_prefix)):
        if texts:
            found.append(or_(*(begins_with(column, text) for text in texts)))
    if query.search:
        text = query.search
        names = select(ASSET_NAME.c.uri).where(ASSET_NAME.c.name.icontains(text, autoescape=True))
        labels = select(EDGE.c.value).where(EDGE.c.label.icontains(text, autoescape=True), EDGE.c.kind == "uri")
        in_itself = or_(ASSET.c.uri.icontains(text, autoescape=True), ASSET.c.group.icontains(text, autoescape=True))
        found.append(or_(in_itself, ASSET.c.uri.in_(names), ASSET.c.uri.in_(labels)))
    if query.group is not None:
        found.append(ASSET.c.group == query.group)
    if query.uris is not None:
        found.append(among(ASSET.c.uri, "uris"))
    return found


def begins_with(column: Any, text: str) -> ColumnElement[bool]:
    """Whether a column's text begins with a text, in the same case."""
    return and_(column >= text, func.substr(column, 1, len(text)) == text)


def _listed(connection: Connection, rows: Sequence[Any]) -> list[ListedAsset]:
    wanted = {"uris": [row[1] for row in rows], "newest": [row[6] for row in rows if row[6] is not None]}
    names = _by_uri(
        connection, select(ASSET_NAME.c.uri, ASSET_NAME.c.name).where(among(ASSET_NAME.c.uri, "uris")), wanted
    )
    links = _by_uri(
        connection, select(ALIAS_LINK.c.uri, ALIAS_LINK.c.alias).where(among(ALIAS_LINK.c.uri, "uris")), wanted
    )
    query = select(EVENT.c.sequence, EVENT.c.occurred, EVENT.c.recorded).where(among(EVENT.c.sequence, "newest"))
    times = {row[0]: (row[1], row[2]) for row in connection.execute(query, {"newest": wanted["newest"]})}
    found: list[ListedAsset] = []
    for number, uri, group, extra, seen, name, newest in rows:
        record = AssetRecord(number, uri, group, extra, seen, names[uri], links[uri])
        occurred, recorded = times.get(newest, (None, seen))
        found.append(ListedAsset(record, name, newest, occurred, recorded))
    return found


def _by_uri(connection: Connection, query: Any, wanted: dict[str, list[Any]]) -> defaultdict[str, tuple[str, ...]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    rows: Sequence[Any] = connection.execute(query, {"uris": wanted["uris"]}).all()
    for uri, value in rows:
        found[uri].append(value)
    return defaultdict(tuple, {uri: tuple(sorted(values)) for uri, values in found.items()})
