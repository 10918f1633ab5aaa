"""Which runs of decisions have, on their page in Prefect, the note that says why they ran."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, update

from assetflow.ledger.among import among
from assetflow.ledger.queries import DECISIONS, decision_from_row
from assetflow.ledger.records import DecisionRecord
from assetflow.ledger.tables import DECISION

_WITHOUT = DECISIONS.where(DECISION.c.noted.is_(None), DECISION.c.flow_run_id.is_not(None)).order_by(DECISION.c.number)
_NOTED = update(DECISION).where(among(DECISION.c.id, "ids"))


def without_note(connection: Connection, limit: int) -> list[DecisionRecord]:
    """See `Reader.without_note`."""
    return [decision_from_row(row) for row in connection.execute(_WITHOUT.limit(limit))]


def noted(connection: Connection, decisions: Collection[UUID], now: datetime) -> None:
    """See `Writer.noted`."""
    connection.execute(_NOTED.values(noted=now), {"ids": decisions})
