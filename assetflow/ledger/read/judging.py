"""Tell up to when states of freshness policies are judged. Contract 8.13."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from assetflow.core.freshness.asset_freshness import Unjudged
from assetflow.ledger.lease import evaluators
from assetflow.ledger.sql.tables import CURSOR

# What the evaluator cannot do now.
HELD_UP = "held up"
# An evaluator reads Prefect's logs every few seconds, and stores every ten seconds up to when.
_PATIENCE = timedelta(seconds=30)


def read_unjudged(connection: Connection) -> Unjudged | None:
    """Return since when and why nothing is judged; `None` if an evaluator judges, or has never read Prefect's logs."""
    cursors = dict(connection.execute(select(CURSOR.c.name, CURSOR.c.value)).tuples().all())
    if cursors.get("events") is None:
        return None
    read, found = datetime.fromisoformat(cursors["events"]), evaluators(connection)
    if found.alive and found.now - read < _PATIENCE:
        return None
    reason = "Prefect does not answer" if cursors.get(HELD_UP) else "the evaluator is still reading Prefect's logs"
    return Unjudged(read, reason if found.alive else "no evaluator is running", found.now)
