"""Assets, their names, and who works with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    String,
    Table,
    and_,
    exists,
    func,
    literal,
    or_,
    select,
    union_all,
)

from assetflow.core.grouping import grouped
from assetflow.core.shapes import TextOrNull, shape
from assetflow.core.values.conditions import Token
from assetflow.ledger.read import Topic, named
from assetflow.ledger.records import Activity, AssetRecord, Order, RedactedExtra
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.rows import readable_name
from assetflow.ledger.sql.tables import (
    ALIAS,
    ALIAS_LINK,
    ASSET,
    ASSET_NAME,
    CONSUMER,
    CONSUMER_TOKEN,
    EDGE,
    EVENT,
    HIDDEN_ASSET,
)

_URI = HIDDEN_ASSET.c.uri


def _named_in(table: Table) -> ColumnElement[bool]:
    """Return the condition that rows of schedules or declarations name the hidden asset."""
    names = select(ASSET_NAME.c.name).where(ASSET_NAME.c.uri == _URI).correlate(HIDDEN_ASSET)
    aliases = select(ALIAS_LINK.c.alias).where(ALIAS_LINK.c.uri == _URI).correlate(HIDDEN_ASSET)
    return or_(
        and_(table.c.kind == "uri", table.c.value == _URI),
        and_(table.c.kind == "name", table.c.value.in_(names)),
        and_(table.c.kind == "alias", table.c.value.in_(aliases)),
    )


HIDDEN = select(_URI).where(
    ~exists().where(EVENT.c.uri == _URI, EVENT.c.sequence > HIDDEN_ASSET.c.sequence),
    ~exists().where(_named_in(CONSUMER_TOKEN)),
    ~exists().where(_named_in(EDGE), ~EDGE.c.learned),
)
"""Selects the URIs of the hidden assets."""


READABLE_NAME = readable_name(ASSET.c.uri)


def _as_dag_id(name: Any) -> ColumnElement[str]:
    return func.replace(name, "/", ".", type_=String())


_NEWEST = select(func.max(EVENT.c.sequence)).where(EVENT.c.uri == ASSET.c.uri).scalar_subquery()
_LAST = EVENT.alias("last")
_UPDATED = func.coalesce(
    select(_LAST.c.recorded)
    .where(_LAST.c.uri == ASSET.c.uri)
    .order_by(_LAST.c.sequence.desc())
    .limit(1)
    .scalar_subquery(),
    ASSET.c.first_seen,
)
_ASSETS = select(
    ASSET.c.id,
    ASSET.c.uri,
    ASSET.c.group,
    ASSET.c.extra,
    ASSET.c.first_seen,
    READABLE_NAME.label("name"),
    _NEWEST.label("newest"),
    ASSET.c.uri.in_(HIDDEN).label("hidden"),
)
_ORDER: dict[str, Any] = {
    "id": ASSET.c.id,
    "uri": ASSET.c.uri,
    "name": READABLE_NAME,
    "group": ASSET.c.group,
    "created_at": ASSET.c.first_seen,
    "updated_at": _UPDATED,
}
_NAMES = select(ASSET_NAME.c.uri, ASSET_NAME.c.name)
_READABLE = select(ASSET.c.uri, READABLE_NAME).where(in_values(ASSET.c.uri, "uris"))
_LINKS = select(ALIAS_LINK.c.uri, ALIAS_LINK.c.alias)
_TIMES = select(EVENT.c.sequence, EVENT.c.occurred, EVENT.c.recorded).where(in_values(EVENT.c.sequence, "newest"))
_MEANT = (
    select(ASSET_NAME.c.uri)
    .where(in_values(ASSET_NAME.c.name, "names"))
    .union(select(ALIAS_LINK.c.uri).where(in_values(ALIAS_LINK.c.alias, "aliases")))
)
# A name comes after a URI of the same text, and so wins.
_CALLED = union_all(
    select(ASSET.c.uri.label("text"), ASSET.c.uri.label("found"), literal(0).label("place")).where(
        in_values(ASSET.c.uri, "texts")
    ),
    select(ASSET_NAME.c.name, ASSET_NAME.c.uri, literal(1)).where(in_values(ASSET_NAME.c.name, "texts")),
).order_by("place")
_SCHEDULED = (
    select(CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value, CONSUMER.c.name, CONSUMER.c.since)
    .join(CONSUMER, CONSUMER.c.id == CONSUMER_TOKEN.c.consumer)
    .where(CONSUMER_TOKEN.c.kind.in_(("uri", "name", "alias")), in_values(CONSUMER_TOKEN.c.value, "values"))
    .order_by(CONSUMER.c.id)
)
_DECLARED = (
    select(EDGE.c.kind, EDGE.c.value, EDGE.c.name, EDGE.c.deployment_id, EDGE.c.direction)
    .where(EDGE.c.kind.in_(("uri", "name", "alias")), in_values(EDGE.c.value, "values"))
    .order_by(EDGE.c.name)
)
_TOKENS_OF_FLOWS = (
    select(CONSUMER_TOKEN.c.kind, CONSUMER_TOKEN.c.value)
    .join(CONSUMER, CONSUMER.c.id == CONSUMER_TOKEN.c.consumer)
    .where(in_values(_as_dag_id(CONSUMER.c.name), "names"))
    .union(select(EDGE.c.kind, EDGE.c.value).where(in_values(_as_dag_id(EDGE.c.name), "names")))
)


@dataclass(frozen=True)
class AssetFilter:
    """Which assets to list. An attribute that is `None` or empty does not matter.

    Attributes:
        name, uri: the name or the URI contains one of these texts, in any case; `%` and `_` are wildcards.
        name_prefix, uri_prefix: the name or the URI begins with one of these texts, in the same case.
        search: the URI, a name or the group contains this text, in any case.
        group: the asset is in this group.
        uris: the URI is one of these.
        hidden: whether an operator hid it.
    """

    name: Sequence[str] = ()
    uri: Sequence[str] = ()
    name_prefix: Sequence[str] = ()
    uri_prefix: Sequence[str] = ()
    search: str = ""
    group: str | None = None
    uris: Collection[str] | None = None
    hidden: bool | None = None


@dataclass(frozen=True)
class AssetUsers:
    """The consumers and deployments that work with an asset.

    Attributes:
        scheduled: the names of the consumers that run on it, each with the time since when it is known.
        producers, readers: the names of the deployments that declare to make it, or to read it, each with its id.
    """

    scheduled: dict[str, datetime]
    producers: dict[str, UUID]
    readers: dict[str, UUID]


@dataclass(frozen=True)
class ListedAsset:
    """An asset with its newest event.

    Attributes:
        name: its readable name; before it has one, the name that a deployed flow declares, or else its URI.
        last_event, last_time: the newest event's sequence, and when it occurred.
        updated: when the newest event was recorded; without events, when the asset became known.
        hidden: an operator hid it, and nothing has come since.
    """

    record: AssetRecord
    name: str
    last_event: int | None
    last_time: datetime | None
    updated: datetime
    hidden: bool = False

    def shown(self, users: AssetUsers) -> ShownAsset:
        """Return the asset as the API and `--json` show it, with the flows that make, read and run on it."""
        record = self.record
        return ShownAsset(
            id=record.id,
            uri=record.uri,
            name=self.name,
            names=record.names,
            group=record.group,
            extra=record.extra,
            aliases=record.aliases,
            first_seen=record.first_seen,
            last_event=self.last_event,
            last_update=self.last_time,
            producers=sorted(users.producers),
            readers=sorted(users.readers),
            consumers=sorted(users.scheduled),
            hidden=self.hidden,
        )


@shape
class ShownAsset:
    """An asset, with the flows that make, read and run on it."""

    id: int
    uri: str
    name: str
    names: Sequence[str]
    group: TextOrNull
    extra: RedactedExtra
    aliases: Sequence[str]
    first_seen: datetime
    last_event: int | None
    last_update: datetime | None
    producers: Sequence[str]
    readers: Sequence[str]
    consumers: Sequence[str]
    hidden: bool
    """An operator hid it, and nothing has come since."""


class AssetReader(Topic):
    """Reads assets."""

    def all(self) -> list[AssetRecord]:
        """Return all assets, by URI."""
        columns = (ASSET.c.id, ASSET.c.uri, ASSET.c.group, ASSET.c.extra, ASSET.c.first_seen)
        with self._connect() as connection:
            names, aliases = _by_uri(connection, _NAMES), _by_uri(connection, _LINKS)
            rows = connection.execute(select(*columns).order_by(ASSET.c.uri)).all()
        return [
            AssetRecord(number, uri, names[uri], group, extra, aliases[uri], seen)
            for number, uri, group, extra, seen in rows
        ]

    def page(
        self, where: AssetFilter | None = None, order: Order = (("id", False),), *, limit: int = 100, offset: int = 0
    ) -> tuple[list[ListedAsset], int]:
        """Return a page of assets, and the number of all assets that match.

        Parameters:
            order: `id`, `name`, `uri`, `group`, `created_at` or `updated_at`, each with whether it descends.
        """
        where = where or AssetFilter()
        conditions = _conditions(where)
        given = {} if where.uris is None else {"uris": list(where.uris)}
        columns = [_ORDER[name].desc() if descends else _ORDER[name] for name, descends in order]
        # What a row shows is looked up for the rows of the page only, not for all that are sorted.
        found = select(ASSET.c.id).where(*conditions).order_by(*columns, ASSET.c.id).limit(limit).offset(offset)
        page = _ASSETS.where(ASSET.c.id.in_(found)).order_by(*columns, ASSET.c.id)
        with self._connect() as connection:
            total = connection.execute(select(func.count()).select_from(ASSET).where(*conditions), given).scalar_one()
            return _listed(connection, connection.execute(page, given).all()), total

    def get(self, *, number: int | None = None, uri: str | None = None) -> ListedAsset | None:
        """Return the asset with this number or this URI."""
        condition = ASSET.c.id == number if number is not None else ASSET.c.uri == uri
        with self._connect() as connection:
            found = _listed(connection, connection.execute(_ASSETS.where(condition)).all())
        return found[0] if found else None

    def numbers(self, uris: Collection[str]) -> dict[str, int]:
        """Return the numbers of those of these assets that the ledger knows, by URI."""
        query = select(ASSET.c.uri, ASSET.c.id).where(in_values(ASSET.c.uri, "uris"))
        return {row[0]: row[1] for row in self._rows(query, {"uris": uris})}

    def names(self, uris: Collection[str]) -> dict[str, str]:
        """Return what these assets are called, by URI: their name, or else their URI. Contract 1.2."""
        with self._connect() as connection:
            return names_of_assets(connection, uris)

    def activity(self) -> Mapping[str, Activity]:
        """Return how often, and when last, each asset that has events was updated, by URI."""
        newest = select(EVENT.c.uri, func.count().label("count"), func.max(EVENT.c.sequence).label("newest"))
        totals = newest.group_by(EVENT.c.uri).subquery()
        query = select(totals.c.uri, totals.c.count, EVENT.c.occurred).join(EVENT, EVENT.c.sequence == totals.c.newest)
        return {uri: Activity(count, occurred) for uri, count, occurred in self._rows(query)}

    def hidden(self) -> set[str]:
        """Return the URIs of the assets that are hidden."""
        return set(self._scalars(HIDDEN))

    def owner_of(self, name: str) -> str | None:
        """Return the URI that a name belongs to. Contract 1.2."""
        return self._scalar(select(ASSET_NAME.c.uri).where(ASSET_NAME.c.name == name))

    def uris_called(self, texts: Collection[str]) -> dict[str, str]:
        """Return the URIs of the assets that people mean: those with these names, else those with these URIs."""
        return {row[0]: row[1] for row in self._rows(_CALLED, {"texts": list(texts)})}

    def known_names(self) -> list[str]:
        """Return all URIs and names, for suggestions."""
        return sorted(self._scalars(select(ASSET_NAME.c.name).union(select(ASSET.c.uri))))

    def groups(self) -> list[str]:
        """Return the groups of assets."""
        return sorted(self._scalars(select(ASSET.c.group).distinct()))

    def aliases(self) -> list[str]:
        """Return the aliases that events came through, or that schedules and flows name."""
        declared = select(EDGE.c.value).where(EDGE.c.kind == "alias")
        scheduled = select(CONSUMER_TOKEN.c.value).where(CONSUMER_TOKEN.c.kind == "alias")
        return sorted(self._scalars(select(ALIAS.c.name).union(declared, scheduled)))

    def uris_of_tokens(self, tokens: Collection[tuple[str, str]]) -> set[str]:
        """Return the URIs that these tokens mean: URIs themselves, owners of names, and assets linked to aliases."""
        by_kind = grouped(tokens)
        given = {"names": by_kind.get("name", []), "aliases": by_kind.get("alias", [])}
        return {*by_kind.get("uri", ()), *self._scalars(_MEANT, given)}

    def tokens_of_flows(self, names: Collection[str]) -> set[tuple[str, str]]:
        """Return the tokens that deployments, each as `flow.deployment`, are scheduled on, produce and read."""
        return {(kind, value) for kind, value in self._rows(_TOKENS_OF_FLOWS, {"names": list(names)})}

    def users_of(self, assets: Sequence[AssetRecord]) -> dict[str, AssetUsers]:
        """Return who runs on these assets, makes and reads them, by URI."""
        uris = grouped((token, asset.uri) for asset in assets for token in asset.tokens)
        given = {"values": list({token.value for token in uris})}
        found = {asset.uri: AssetUsers({}, {}, {}) for asset in assets}
        with self._connect() as connection:
            for kind, value, name, since in connection.execute(_SCHEDULED, given):
                for uri in uris.get(Token(kind, value), ()):
                    found[uri].scheduled[name] = since
            for kind, value, name, deployment, direction in connection.execute(_DECLARED, given):
                for uri in uris.get(Token(kind, value), ()):
                    users = found[uri]
                    (users.producers if direction == "produces" else users.readers)[name] = deployment
        return found


def names_of_assets(connection: Connection, uris: Collection[str]) -> dict[str, str]:
    """Return what these assets are called, by URI: their name, or else their URI. Contract 1.2."""
    known = {row[0]: row[1] for row in connection.execute(_READABLE, {"uris": list(uris)})} if uris else {}
    return {uri: known.get(uri, uri) for uri in uris}


def _conditions(where: AssetFilter) -> list[ColumnElement[bool]]:
    found = [
        *named(READABLE_NAME, where.name, where.name_prefix),
        *named(ASSET.c.uri, where.uri, where.uri_prefix),
    ]
    if where.search:
        text = where.search
        names = select(ASSET_NAME.c.uri).where(ASSET_NAME.c.name.icontains(text, autoescape=True))
        in_itself = or_(ASSET.c.uri.icontains(text, autoescape=True), ASSET.c.group.icontains(text, autoescape=True))
        found.append(or_(in_itself, ASSET.c.uri.in_(names)))
    if where.group is not None:
        found.append(ASSET.c.group == where.group)
    if where.uris is not None:
        found.append(in_values(ASSET.c.uri, "uris"))
    if where.hidden is not None:
        found.append(ASSET.c.uri.in_(HIDDEN) if where.hidden else ASSET.c.uri.not_in(HIDDEN))
    return found


def _listed(connection: Connection, rows: Sequence[Any]) -> list[ListedAsset]:
    uris = {"uris": [row[1] for row in rows]}
    names = _by_uri(connection, _NAMES.where(in_values(ASSET_NAME.c.uri, "uris")), uris)
    aliases = _by_uri(connection, _LINKS.where(in_values(ALIAS_LINK.c.uri, "uris")), uris)
    newest = {"newest": [row[6] for row in rows if row[6] is not None]}
    times = {row[0]: (row[1], row[2]) for row in connection.execute(_TIMES, newest)}
    return [
        ListedAsset(
            AssetRecord(number, uri, names[uri], group, extra, aliases[uri], seen),
            name,
            last,
            *times.get(last, (None, seen)),
            hidden=bool(hidden),
        )
        for number, uri, group, extra, seen, name, last, hidden in rows
    ]


def _by_uri(
    connection: Connection, query: Select[tuple[str, str]], given: Mapping[str, list[str]] | None = None
) -> Mapping[str, tuple[str, ...]]:
    found = grouped(connection.execute(query, given or {}).tuples())
    return defaultdict(tuple, {uri: tuple(sorted(values)) for uri, values in found.items()})
