"""What is new in the ledger since a reader looked last: for listeners, who hear of everything after its commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from assetflow.core.assets import Asset, AssetAlias
from assetflow.core.events import AssetEvent
from assetflow.ledger.among import among
from assetflow.ledger.queries import DECISIONS, decision_from_row, events_of
from assetflow.ledger.records import DecisionRecord
from assetflow.ledger.rows import EVENT_COLUMNS, event_from_row
from assetflow.ledger.tables import ASSET, ASSET_NAME, DECISION, EVENT, EVENT_ALIAS, LEDGER

_FIRST = (
    select(EVENT_ALIAS.c.alias, func.min(EVENT_ALIAS.c.sequence))
    .where(among(EVENT_ALIAS.c.alias, "aliases"))
    .group_by(EVENT_ALIAS.c.alias)
)


@dataclass(frozen=True)
class Seen:
    """The last number of each kind that a reader has seen."""

    asset: int = 0
    event: int = 0
    decision: int = 0


@dataclass(frozen=True)
class News:
    """What came after; each kind in the order in which it came.

    Attributes:
        assets: new ones with their numbers.
        events: with the aliases that came into being with each.
        decisions: with the events that they consumed.
    """

    assets: Sequence[tuple[int, Asset]]
    events: Sequence[tuple[AssetEvent, Sequence[AssetAlias]]]
    decisions: Sequence[tuple[DecisionRecord, tuple[AssetEvent, ...]]]


def newest(connection: Connection) -> Seen:
    """What somebody has seen who has seen all."""
    event, decision = connection.execute(select(LEDGER.c.last_event, LEDGER.c.last_decision)).one()
    return Seen(connection.scalar(select(func.max(ASSET.c.id))) or 0, event, decision)


def news(connection: Connection, seen: Seen, limit: int) -> News:
    """What came after, at most so many of each kind; no event before its asset, no decision before its events.

    They are read in the opposite order, so that what is committed in between cannot turn it round.
    """
    decisions = _decisions(connection, seen.decision, limit)
    events = _events(connection, seen.event, limit)
    assets = _assets(connection, seen.asset, limit)
    if len(assets) == limit:
        return News(assets, (), ())
    return News(assets, events, decisions if len(events) < limit else ())


def _assets(connection: Connection, after: int, limit: int) -> list[tuple[int, Asset]]:
    # The name that an asset was given; one that has none is called like its URI.
    name = select(func.min(ASSET_NAME.c.name)).where(ASSET_NAME.c.uri == ASSET.c.uri, ASSET_NAME.c.name != ASSET.c.uri)
    query = select(ASSET.c.id, ASSET.c.uri, name.scalar_subquery(), ASSET.c.group, ASSET.c.extra)
    rows = connection.execute(query.where(ASSET.c.id > after).order_by(ASSET.c.id).limit(limit)).all()
    return [(number, Asset(uri, name=name, group=group, extra=extra)) for number, uri, name, group, extra in rows]


def _events(connection: Connection, after: int, limit: int) -> list[tuple[AssetEvent, list[AssetAlias]]]:
    query = select(*EVENT_COLUMNS).where(EVENT.c.sequence > after).order_by(EVENT.c.sequence).limit(limit)
    events = [event_from_row(row) for row in connection.execute(query)]
    aliases = dict.fromkeys(alias for event in events for alias in event.aliases)
    rows = connection.execute(_FIRST, {"aliases": aliases}).all() if aliases else ()
    born: dict[int, list[AssetAlias]] = {}
    for alias, sequence in rows:
        born.setdefault(sequence, []).append(AssetAlias(alias))
    return [(event, born.get(event.sequence or 0, [])) for event in events]


def _decisions(connection: Connection, after: int, limit: int) -> list[tuple[DecisionRecord, tuple[AssetEvent, ...]]]:
    query = DECISIONS.where(DECISION.c.number > after).order_by(DECISION.c.number).limit(limit)
    records = [decision_from_row(row) for row in connection.execute(query)]
    events = events_of(connection, [each.number for each in records])
    return [(each, events[each.number]) for each in records]
