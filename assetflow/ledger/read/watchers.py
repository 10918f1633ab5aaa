"""Read watchers: what they watch, how they are, and how far they have come."""

from __future__ import annotations

from collections.abc import Mapping
from socket import gethostname
from typing import Any

from sqlalchemy import Connection, Select, exists, func, select

from assetflow.core.values.assets import Asset
from assetflow.core.values.watchers import WebhookTrigger, stored_trigger
from assetflow.core.watchers.intake import Note
from assetflow.core.wire.conditions import node_from_json
from assetflow.ledger.lease import Role, clock, is_held, read_lease
from assetflow.ledger.read import Topic
from assetflow.ledger.records import NO_WATCHERS, WatcherRecord, WatchingStatus
from assetflow.ledger.sql.functions import text_at
from assetflow.ledger.sql.tables import NOTED_MESSAGE, WATCHED_ASSET, WATCHER, WATCHER_ITEM

_ASSETS = select(WATCHED_ASSET.c.watcher, WATCHED_ASSET.c.uri, WATCHED_ASSET.c.asset).order_by(
    WATCHED_ASSET.c.watcher, WATCHED_ASSET.c.uri, WATCHED_ASSET.c.deployment_id
)
# Webhooks are received by the server.
_IS_LOOKED_AFTER = (WATCHER.c.paused.is_(False), text_at(WATCHER.c.trigger, "kind") != WebhookTrigger.kind)
_IS_FAILING = WATCHER.c.state == "failing"
_LOOKED_AFTER = select(func.count(), func.count().filter(_IS_FAILING)).where(*_IS_LOOKED_AFTER)
_FAILING = select(WATCHER.c.name, WATCHER.c.error).where(*_IS_LOOKED_AFTER, _IS_FAILING).order_by(WATCHER.c.name)


class WatcherReader(Topic):
    """Reads watchers."""

    def all(self) -> list[WatcherRecord]:
        """Return all watchers that deployments declare, by name."""
        with self._connect() as connection:
            return _records(connection, select(WATCHER), _ASSETS)

    def any(self) -> bool:
        """Return True if a deployment declares a watcher."""
        return bool(self._scalar(select(exists(select(WATCHER.c.name)))))

    def failing(self) -> list[WatcherRecord]:
        """Return the watchers whose last look failed and that are not paused, by name."""
        fails = (WATCHER.c.error != "", WATCHER.c.paused.is_(False))
        names = select(WATCHER.c.name).where(*fails)
        with self._connect() as connection:
            return _records(
                connection, select(WATCHER).where(*fails), _ASSETS.where(WATCHED_ASSET.c.watcher.in_(names))
            )

    def of_asset(self, uri: str) -> list[WatcherRecord]:
        """Return the watchers of an asset, by name, each with this asset alone."""
        names = select(WATCHED_ASSET.c.watcher).where(WATCHED_ASSET.c.uri == uri)
        with self._connect() as connection:
            return _records(
                connection, select(WATCHER).where(WATCHER.c.name.in_(names)), _ASSETS.where(WATCHED_ASSET.c.uri == uri)
            )

    def status(self) -> WatchingStatus:
        """Return how many watchers a process has to run, which of them fail, and whether it runs."""
        with self._connect() as connection:
            watchers, failing = connection.execute(_LOOKED_AFTER).one()
            if not watchers:
                return NO_WATCHERS
            reasons = dict(connection.execute(_FAILING).tuples().all()) if failing else {}
            lease = read_lease(connection, Role.WATCHERS)
            alive = lease is not None and is_held(connection, lease, clock(connection), gethostname())
        return WatchingStatus(watchers, reasons, alive, None if lease is None else lease.renewed)

    def latest_change(self) -> tuple[int, object]:
        """Return a value that changes when a watcher is declared, dropped, paused or resumed."""
        count, changed = self._rows(select(func.count(), func.max(WATCHER.c.changed)))[0]
        return count, changed

    def begun(self, watcher: str) -> bool:
        """Return True if a watcher has looked, so that what comes from now on is new. Contract 10.4."""
        return bool(self._scalar(select(WATCHER.c.begun).where(WATCHER.c.name == watcher)))

    def items(self, watcher: str) -> dict[str, object]:
        """Return the items of a watcher's cursor, by name. Contract 10.4."""
        query = select(WATCHER_ITEM.c.item, WATCHER_ITEM.c.value).where(WATCHER_ITEM.c.watcher == watcher)
        return dict(self._rows(query))

    def notes(self, source: str) -> list[Note]:
        """Return the messages of a source that are noted. Contract 10.3."""
        query = select(NOTED_MESSAGE.c.token, NOTED_MESSAGE.c.digest).where(NOTED_MESSAGE.c.source == source)
        return [Note(token, digest) for token, digest in self._rows(query)]


def _records(connection: Connection, watchers: Select[Any], watched: Select[Any]) -> list[WatcherRecord]:
    rows = connection.execute(watchers.order_by(WATCHER.c.name)).mappings().all()
    assets: dict[str, dict[str, Asset]] = {}
    for watcher, uri, written in connection.execute(watched):
        asset = node_from_json(written)
        if isinstance(asset, Asset):
            assets.setdefault(watcher, {}).setdefault(uri, asset)
    return [_record(row, tuple(assets.get(row["name"], {}).values())) for row in rows]


def _record(row: Mapping[Any, Any], assets: tuple[Asset, ...]) -> WatcherRecord:
    return WatcherRecord(
        name=row["name"],
        trigger=stored_trigger(row["trigger"]),
        assets=assets,
        begun=row["begun"],
        paused=row["paused"],
        state="paused" if row["paused"] else row["state"],
        error=row["error"],
        since=row["since"],
        last_update=row["last_update"],
        updates=row["updates"],
        filtered=row["filtered"],
        refused=row["refused"],
        lag=row["lag"],
    )
