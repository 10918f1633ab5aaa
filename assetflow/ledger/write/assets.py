"""Store what deployments produce and read: for lineage, and so that assets are known before an update."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, bindparam, delete, insert, select

from assetflow.core.graph.lineage import Learned
from assetflow.core.json_data import fit_text
from assetflow.core.rules.fold import Touched
from assetflow.core.rules.registry import declare_names
from assetflow.core.values.assets import Asset, Outlet
from assetflow.core.values.consumers import Decision
from assetflow.core.wire import FlowDeclaration, declaration_from_text
from assetflow.ledger.sql.bulk import upsert_rows
from assetflow.ledger.sql.tables import EDGE, HIDDEN_ASSET, LEDGER
from assetflow.ledger.write.store import Operations, UnitOfWork
from assetflow.ledger.write.watchers import replace_watchers

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
