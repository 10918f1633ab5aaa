"""Read watchers: what they watch, how they are, and how far they have come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select

from assetflow.core.assets import Asset
from assetflow.core.codec.nodes import node_from_json
from assetflow.core.watchers.intake import Note
from assetflow.core.watchers.triggers import trigger_from_json
from assetflow.ledger.records import WatcherRecord
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.tables import NOTED_MESSAGE, WATCHED_ASSET, WATCHER, WATCHER_ITEM

_ASSETS = select(WATCHED_ASSET.c.watcher, WATCHED_ASSET.c.uri, WATCHED_ASSET.c.asset).order_by(
    WATCHED_ASSET.c.watcher, WATCHED_ASSET.c.uri, WATCHED_ASSET.c.deployment_id
)


class WatcherReader:
    """Reads watchers. All methods raise `LedgerError` if the ledger cannot be read."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    def all(self) -> list[WatcherRecord]:
        """Return all watchers that deployments declare, by name."""
        with self._connect() as connection:
            rows = connection.execute(select(WATCHER).order_by(WATCHER.c.name)).mappings().all()
            assets: dict[str, dict[str, Asset]] = {}
            for watcher, uri, written in connection.execute(_ASSETS):
                asset = node_from_json(written)
                if isinstance(asset, Asset):
                    assets.setdefault(watcher, {}).setdefault(uri, asset)
        return [_record(row, tuple(assets.get(row["name"], {}).values())) for row in rows]

    def of_asset(self, uri: str) -> list[WatcherRecord]:
        """Return the watchers of an asset, by name."""
        return [each for each in self.all() if any(asset.uri == uri for asset in each.assets)]

    def latest_change(self) -> tuple[int, object]:
        """Return a value that changes when a watcher is declared, dropped, paused or resumed."""
        with self._connect() as connection:
            count, changed = connection.execute(select(func.count(), func.max(WATCHER.c.changed))).one()
        return count, changed

    def items(self, watcher: str) -> dict[str, object]:
        """Return the items of a watcher's cursor, by name. Contract 10.4."""
        query = select(WATCHER_ITEM.c.item, WATCHER_ITEM.c.value).where(WATCHER_ITEM.c.watcher == watcher)
        with self._connect() as connection:
            return dict(connection.execute(query).tuples().all())

    def notes(self, source: str) -> list[Note]:
        """Return the messages of a source that are noted. Contract 10.3."""
        query = select(NOTED_MESSAGE.c.token, NOTED_MESSAGE.c.digest).where(NOTED_MESSAGE.c.source == source)
        with self._connect() as connection:
            return [Note(token, digest) for token, digest in connection.execute(query)]


def _record(row: Mapping[Any, Any], assets: tuple[Asset, ...]) -> WatcherRecord:
    return WatcherRecord(
        name=row["name"],
        trigger=trigger_from_json(row["trigger"]),
        assets=assets,
        begun=row["begun"],
        paused=row["paused"],
        state=row["state"],
        error=row["error"],
        since=row["since"],
        last_update=row["last_update"],
        updates=row["updates"],
        filtered=row["filtered"],
        refused=row["refused"],
        lag=row["lag"],
    )
