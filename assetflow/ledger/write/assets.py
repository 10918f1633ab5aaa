"""Hide assets, and show them again."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, select

from assetflow.core.json_data import fit_text
from assetflow.ledger.sql.bulk import upsert_rows
from assetflow.ledger.sql.tables import HIDDEN_ASSET, LEDGER
from assetflow.ledger.write.store import Store

_HIDE = upsert_rows((HIDDEN_ASSET.c.uri,), (HIDDEN_ASSET.c.sequence, HIDDEN_ASSET.c.since, HIDDEN_ASSET.c.hidden_by))


class AssetWriter:
    """Writes assets. All methods raise `LedgerLocked` and `LedgerError` if the ledger cannot be written."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def hide(self, uri: str, *, by: str, now: datetime) -> None:
        """Hide an asset until its next update. It is shown while a flow declares it."""
        with self._store.writes() as connection:
            last_event = connection.scalar(select(LEDGER.c.last_event))
            _HIDE.run(connection, [(uri, last_event, now, fit_text(by))])

    def unhide(self, uri: str) -> None:
        """Show an asset again."""
        with self._store.writes() as connection:
            connection.execute(delete(HIDDEN_ASSET).where(HIDDEN_ASSET.c.uri == uri))
