"""Store which watchers the deployments declare. Contract 10.1."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from assetflow.core.values.assets import Asset
from assetflow.core.values.watchers import AssetWatcher
from assetflow.core.watchers.stored import stored_trigger
from assetflow.core.wire.conditions import node_to_json
from assetflow.ledger.sql.tables import WATCHED_ASSET, WATCHER, WATCHER_ITEM

_NAMES = select(WATCHED_ASSET.c.watcher).where(WATCHED_ASSET.c.deployment_id == bindparam("deployment"))


def replace_watchers(connection: Connection, deployment_id: UUID, assets: Iterable[Asset], now: datetime) -> None:
    """Replace the watchers of a deployment by those of its declaration.

    A watcher that no deployment declares any more goes, with its cursor. One whose trigger looks elsewhere now begins
    anew. Contract 10.4.
    """
    wanted = {(watcher.name, asset.uri): (watcher, asset) for asset in assets for watcher in asset.watchers}
    before = _names(connection, deployment_id)
    if not wanted and not before:
        return
    connection.execute(delete(WATCHED_ASSET).where(WATCHED_ASSET.c.deployment_id == deployment_id))
    for watcher in {each.name: each for each, _ in wanted.values()}.values():
        _declare(connection, watcher, now)
    if wanted:
        connection.execute(insert(WATCHED_ASSET), [_row(deployment_id, *each) for each in wanted.values()])
    _drop_undeclared(connection, before)


def drop_watchers(connection: Connection, deployment_id: UUID) -> None:
    """Remove what a deployment declares: it was deleted."""
    before = _names(connection, deployment_id)
    if before:
        connection.execute(delete(WATCHED_ASSET).where(WATCHED_ASSET.c.deployment_id == deployment_id))
        _drop_undeclared(connection, before)


def _names(connection: Connection, deployment_id: UUID) -> set[str]:
    return set(connection.scalars(_NAMES, {"deployment": deployment_id}))


def _declare(connection: Connection, watcher: AssetWatcher, now: datetime) -> None:
    known = connection.execute(select(WATCHER.c.trigger).where(WATCHER.c.name == watcher.name)).scalar_one_or_none()
    trigger = watcher.trigger.as_json()
    if known is None:
        counts = dict.fromkeys(("updates", "filtered", "refused"), 0)
        row = {"name": watcher.name, "trigger": trigger, "changed": now, "paused": False, "begun": False}
        connection.execute(insert(WATCHER), [row | counts | {"state": "new", "error": "", "since": now}])
        return
    changed: dict[str, object] = {"trigger": trigger, "changed": now}
    if known != trigger and stored_trigger(known).place != watcher.trigger.place:
        connection.execute(delete(WATCHER_ITEM).where(WATCHER_ITEM.c.watcher == watcher.name))
        changed |= {"begun": False, "lag": None}
    connection.execute(update(WATCHER).where(WATCHER.c.name == watcher.name).values(changed))


def _drop_undeclared(connection: Connection, names: set[str]) -> None:
    for name in names:
        declared = connection.execute(select(WATCHED_ASSET.c.uri).where(WATCHED_ASSET.c.watcher == name).limit(1))
        if declared.first() is None:
            connection.execute(delete(WATCHER_ITEM).where(WATCHER_ITEM.c.watcher == name))
            connection.execute(delete(WATCHER).where(WATCHER.c.name == name))


def _row(deployment_id: UUID, watcher: AssetWatcher, asset: Asset) -> dict[str, object]:
    plain = Asset.known(asset.uri, asset.name, asset.group, asset.extra)
    written = node_to_json(plain)
    return {"deployment_id": deployment_id, "watcher": watcher.name, "uri": asset.uri, "asset": written}
