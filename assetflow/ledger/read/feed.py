"""The feed of new assets, events, decisions and missed deadlines, read from a position on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import AssetEvent
from assetflow.ledger.read import Topic
from assetflow.ledger.read.consumers import missed_after
from assetflow.ledger.read.decisions import DECISIONS, decision_from_row, events_of
from assetflow.ledger.records import DecisionRecord, MissedDeadlineRecord
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.rows import EVENT_COLUMNS, event_from_row, readable_name
from assetflow.ledger.sql.tables import ASSET, DECISION, EVENT, EVENT_ALIAS, LEDGER, MISSED_DEADLINE

_FIRST = (
    select(EVENT_ALIAS.c.alias, func.min(EVENT_ALIAS.c.sequence))
    .where(in_values(EVENT_ALIAS.c.alias, "aliases"))
    .group_by(EVENT_ALIAS.c.alias)
)


@dataclass(frozen=True)
class Position:
    """A position in the feed: the last number of each kind that has been read."""

    asset: int = 0
    event: int = 0
    decision: int = 0
    deadline: int = 0


@dataclass(frozen=True)
class FeedPage:
    """New assets, events, decisions and missed deadlines, each in the order in which they came.

    Attributes:
        assets: each with its number.
        events: each with the aliases that it was the first to come through.
        decisions: each with the events that it consumed.
        deadlines: the deadlines that were missed.
    """

    assets: Sequence[tuple[int, Asset]]
    events: Sequence[tuple[AssetEvent, Sequence[AssetAlias]]]
    decisions: Sequence[tuple[DecisionRecord, tuple[AssetEvent, ...]]]
    deadlines: Sequence[MissedDeadlineRecord] = ()


class FeedReader(Topic):
    """Reads the feed."""

    def end(self) -> Position:
        """Return the position after the newest change, for a reader that starts now."""
        numbers = select(LEDGER.c.last_event, LEDGER.c.last_decision)
        with self._connect() as connection:
            event, decision = connection.execute(numbers).one()
            asset, deadline = (
                connection.scalar(select(func.max(of))) or 0 for of in (ASSET.c.id, MISSED_DEADLINE.c.number)
            )
            return Position(asset, event, decision, deadline)

    def after(self, position: Position, *, limit: int = 100) -> FeedPage:
        """Return what came after a position, at most `limit` of each kind.

        No event comes before its asset, and no decision before its events. Therefore they are read in the opposite
        order: a commit in between cannot reverse it.
        """
        with self._connect() as connection:
            deadlines = missed_after(connection, position.deadline, limit)
            decisions = _decisions(connection, position.decision, limit)
            events = _events(connection, position.event, limit)
            assets = _assets(connection, position.asset, limit)
        if len(assets) == limit:
            return FeedPage(assets, (), ())
        if len(events) == limit:
            return FeedPage(assets, events, ())
        return FeedPage(assets, events, decisions, deadlines)


def _assets(connection: Connection, after: int, limit: int) -> list[tuple[int, Asset]]:
    query = select(ASSET.c.id, ASSET.c.uri, readable_name(ASSET.c.uri), ASSET.c.group, ASSET.c.extra)
    rows = connection.execute(query.where(ASSET.c.id > after).order_by(ASSET.c.id).limit(limit)).all()
    return [(number, Asset.known(uri, name, group, extra)) for number, uri, name, group, extra in rows]


def _events(connection: Connection, after: int, limit: int) -> list[tuple[AssetEvent, list[AssetAlias]]]:
    query = select(*EVENT_COLUMNS).where(EVENT.c.sequence > after).order_by(EVENT.c.sequence).limit(limit)
    events = [event_from_row(row) for row in connection.execute(query)]
    aliases = dict.fromkeys(alias for event in events for alias in event.aliases)
    rows = connection.execute(_FIRST, {"aliases": aliases}).all() if aliases else ()
    new: dict[int, list[AssetAlias]] = {}
    for alias, sequence in rows:
        new.setdefault(sequence, []).append(AssetAlias(alias))
    return [(event, new.get(event.sequence or 0, [])) for event in events]


def _decisions(connection: Connection, after: int, limit: int) -> list[tuple[DecisionRecord, tuple[AssetEvent, ...]]]:
    query = DECISIONS.where(DECISION.c.number > after).order_by(DECISION.c.number).limit(limit)
    records = [decision_from_row(row) for row in connection.execute(query)]
    events = events_of(connection, [each.number for each in records])
    return [(each, events[each.number]) for each in records]
