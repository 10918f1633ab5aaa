"""Record what watchers found, how they are, and which assets deployments declare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from assetflow.core.graph.lineage import Learned
from assetflow.core.json_data import fit_text
from assetflow.core.rules.fold import Recorded, Touched
from assetflow.core.rules.registry import declare_names
from assetflow.core.rules.state.state import prefetch
from assetflow.core.values.addresses import without_passwords
from assetflow.core.values.assets import Asset, Outlet
from assetflow.core.values.consumers import Decision
from assetflow.core.values.watchers import AssetWatcher, stored_trigger
from assetflow.core.watchers.intake import CursorStep, RefusedChange, WatcherIntake
from assetflow.core.wire import FlowDeclaration, declaration_from_text
from assetflow.core.wire.declarations import node_to_json
from assetflow.errors import UnknownWatcher
from assetflow.ledger.sql.bulk import delete_rows, insert_rows, upsert_rows
from assetflow.ledger.sql.tables import (
    EDGE,
    HIDDEN_ASSET,
    LEDGER,
    NOTED_MESSAGE,
    WATCHED_ASSET,
    WATCHER,
    WATCHER_ITEM,
)
from assetflow.ledger.write.store import Operations, UnitOfWork, keep_refused

_KNOW = upsert_rows(*WATCHER_ITEM.c)
_FORGET_ITEMS = delete_rows(WATCHER_ITEM.c.watcher, WATCHER_ITEM.c.item)
_NOTE = insert_rows(*NOTED_MESSAGE.c)
_FORGET_NOTES = delete_rows(NOTED_MESSAGE.c.token)


class WatcherWriter(Operations):
    """Writes watchers."""

    def record(self, intake: WatcherIntake, now: datetime) -> list[tuple[Recorded, list[Decision]]]:
        """Record what a watcher found, decide, and store its cursor, in one transaction. Contract 10.2 to 10.5.

        What is recorded already is left out, so the same messages may come any number of times.

        Returns:
            For each recording what became of it, and the decisions of its pass.
        """
        with self._store.transaction(now) as unit:
            prefetch(unit.state, intake.recordings)
            done = [self._store.record(unit.state, recording, now) for recording in intake.recordings]
            refused = [each for each in intake.refused if _is_new(unit.connection, each, intake.source, now)]
            _count(unit.connection, intake, done, refused, now)
            _NOTE.run(unit.connection, [(each.token, intake.source, each.digest) for each in intake.notes])
            _FORGET_NOTES.run(unit.connection, [(each,) for each in intake.forget])
            if intake.cursor is not None:
                _step(unit.connection, intake.cursor)
        return done

    def acknowledged(self, tokens: Collection[UUID]) -> None:
        """Forget noted messages: the source has heard that they are recorded. Contract 10.3."""
        with self._store.writes() as connection:
            _FORGET_NOTES.run(connection, [(each,) for each in tokens])

    def set_state(self, names: Iterable[str], state: str, error: str, now: datetime) -> None:
        """Store whether watchers watch or fail, and why. The time of a change of the state is kept."""
        reason = without_passwords(fit_text(error))
        with self._store.writes() as connection:
            for name in names:
                of_name = update(WATCHER).where(WATCHER.c.name == name)
                connection.execute(of_name.where(WATCHER.c.state != state).values(state=state, since=now))
                connection.execute(of_name.values(error=reason))

    def set_lag(self, lags: Mapping[str, int | None]) -> None:
        """Store how much waits at the sources of watchers."""
        with self._store.writes() as connection:
            for name, lag in lags.items():
                connection.execute(update(WATCHER).where(WATCHER.c.name == name).values(lag=lag))

    def switch(self, name: str, *, paused: bool, now: datetime) -> None:
        """Pause or resume a watcher.

        Raises:
            UnknownWatcher: no deployed asset has a watcher of this name.
        """
        with self._store.writes() as connection:
            changed = update(WATCHER).where(WATCHER.c.name == name).values(paused=paused, changed=now)
            if not connection.execute(changed).rowcount:
                raise UnknownWatcher(f"there is no watcher {name!r}", fix="`assetflow watchers ls` lists them")


def _is_new(connection: Connection, refused: RefusedChange, source: str, now: datetime) -> bool:
    """Keep what is refused; return False if its id is known."""
    reason = fit_text(refused.reason)
    return keep_refused(connection, refused.id, refused.payload, reason, refused.rule, source, now)


def _count(
    connection: Connection,
    intake: WatcherIntake,
    done: Iterable[tuple[Recorded, object]],
    refusals: Iterable[RefusedChange],
    now: datetime,
) -> None:
    """Add to the counts of the watchers what is new."""
    new = (event.id for recorded, _ in done for event in recorded.events)
    updates = Counter(name for number in new for name in intake.makers.get(number, ()))
    refused = Counter(name for each in refusals for name in each.watchers)
    for name in {*updates, *intake.filtered, *refused}:
        changed: dict[str, object] = {
            "updates": WATCHER.c.updates + updates[name],
            "filtered": WATCHER.c.filtered + intake.filtered.get(name, 0),
            "refused": WATCHER.c.refused + refused[name],
        }
        if updates[name]:
            changed["last_update"] = now
        connection.execute(update(WATCHER).where(WATCHER.c.name == name).values(changed))


def _step(connection: Connection, step: CursorStep) -> None:
    _KNOW.run(connection, [(step.watcher, item, value) for item, value in step.known.items()])
    _FORGET_ITEMS.run(connection, [(step.watcher, item) for item in step.gone])
    not_begun = (WATCHER.c.name == step.watcher, WATCHER.c.begun.is_(False))
    connection.execute(update(WATCHER).where(*not_begun).values(begun=True))


_NAMES = select(WATCHED_ASSET.c.watcher).where(WATCHED_ASSET.c.deployment_id == bindparam("deployment"))


def replace_watchers(connection: Connection, deployment_id: UUID, assets: Iterable[Asset], now: datetime) -> None:
    """Replace the watchers of a deployment by those of its declaration.

    A watcher that no deployment declares any more goes, with its cursor. One whose trigger looks elsewhere now begins
    anew. Contract 10.4.
    """
    wanted = {(watcher.name, asset.uri): (watcher, asset) for asset in assets for watcher in asset.watchers}
    before = set(connection.scalars(_NAMES, {"deployment": deployment_id}))
    if not wanted and not before:
        return
    connection.execute(delete(WATCHED_ASSET).where(WATCHED_ASSET.c.deployment_id == deployment_id))
    for watcher in {each.name: each for each, _ in wanted.values()}.values():
        _declare(connection, watcher, now)
    if wanted:
        connection.execute(insert(WATCHED_ASSET), [_row(deployment_id, *each) for each in wanted.values()])
    _drop_undeclared(connection, before)


def _declare(connection: Connection, watcher: AssetWatcher, now: datetime) -> None:
    known = connection.execute(select(WATCHER.c.trigger).where(WATCHER.c.name == watcher.name)).scalar_one_or_none()
    trigger = watcher.trigger.as_json()
    if known is None:
        row = {"name": watcher.name, "trigger": trigger, "changed": now, "since": now}
        connection.execute(insert(WATCHER), [row])
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


Row = dict[str, object]

_DROP_ALL = delete(EDGE).where(EDGE.c.deployment_id == bindparam("deployment"))
_DROP = _DROP_ALL.where(~EDGE.c.learned)
_LEARN = upsert_rows(*EDGE.c)
_LEARNED = select(*EDGE.c).where(EDGE.c.learned, EDGE.c.deployment_id == bindparam("deployment"))


class LineageWriter(Operations):
    """Writes lineage."""

    def declare(
        self, deployment_id: UUID, name: str, declaration_text: str, now: datetime, *, late: bool = False
    ) -> list[Decision]:
        """Store what a deployment produces, reads and watches that is not in the data graph, and its assets.

        Parameters:
            late: updates which came before may not be recorded yet, as in `ConsumerWriter.change`.

        Returns:
            The decisions of the pass that follows, for consumers that refer to a name which is known now (1.6).

        Raises:
            InvalidSchedule: the declaration cannot be read.
        """
        declaration = declaration_from_text(declaration_text, where=name)
        with self._store.transaction(now) as unit:
            touched = replace_edges(unit, deployment_id, name, declaration)
            replace_watchers(unit.connection, deployment_id, declaration.assets, now)
            return self._store.pass_over_changed(unit.state, touched, now, late=late)

    def learn(self, learned: Learned, now: datetime) -> None:
        """Store what Prefect's events tell of what a deployment makes and reads, unless it is known. Contract 2.9."""
        of: Row = {"deployment_id": learned.deployment_id, "name": learned.name, "learned": True}
        told = [*_rows(of, "produces", learned.produces), *_rows(of, "reads", learned.reads)]
        with self._store.reads() as connection:
            known = connection.execute(_LEARNED, {"deployment": learned.deployment_id}).mappings().all()
        if new := [row for row in told if row not in known]:
            with self._store.transaction(now) as unit:
                _LEARN.run(unit.connection, [tuple(row[each.name] for each in EDGE.c) for row in new])
                _make_known(unit, (*learned.produces, *learned.reads))


def replace_edges(unit: UnitOfWork, deployment_id: UUID, name: str, declaration: FlowDeclaration) -> Touched:
    """Replace the edges of a deployment by those of its declaration, and return the consumers to check.

    The assets that it names, and their names, are known from then on. Contract 1.6.
    """
    drop_edges(unit.connection, deployment_id)
    of: Row = {"deployment_id": deployment_id, "name": name, "learned": False}
    rows = [*_rows(of, "produces", declaration.produces), *_rows(of, "reads", declaration.reads)]
    if rows:
        unit.connection.execute(insert(EDGE), rows)
    _make_known(unit, declaration.assets)
    return declare_names(unit.state, declaration.assets, deployment_id)


def _make_known(unit: UnitOfWork, assets: Sequence[Asset]) -> None:
    unit.state.names.load(asset.uri for asset in assets)
    for asset in assets:
        unit.state.names.describe(asset)


def drop_edges(connection: Connection, deployment_id: UUID, *, learned: bool = False) -> None:
    """Remove the edges that a deployment declares, and with `learned` all others."""
    connection.execute(_DROP_ALL if learned else _DROP, {"deployment": deployment_id})


def _rows(of: Row, direction: str, outlets: Iterable[Outlet]) -> Iterable[Row]:
    for kind, value in dict.fromkeys(outlet.token for outlet in outlets):
        yield of | {"direction": direction, "kind": kind, "value": value}


_HIDE = upsert_rows(*HIDDEN_ASSET.c)


class AssetWriter(Operations):
    """Writes assets."""

    def hide(self, uri: str, *, by: str, now: datetime) -> None:
        """Hide an asset until its next update. It is shown while a flow declares it."""
        with self._store.writes() as connection:
            last_event = connection.scalar(select(LEDGER.c.last_event))
            _HIDE.run(connection, [(uri, last_event, now, fit_text(by))])

    def unhide(self, uri: str) -> None:
        """Show an asset again."""
        with self._store.writes() as connection:
            connection.execute(delete(HIDDEN_ASSET).where(HIDDEN_ASSET.c.uri == uri))
