"""Missed deadlines. Contract 9.8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from assetflow.core.values.consumers import MissedDeadline
from assetflow.ledger.records import MissedDeadlineRecord
from assetflow.ledger.sql.engine import Connect
from assetflow.ledger.sql.rows import key_from_column
from assetflow.ledger.sql.tables import CONSUMER, MISSED_DEADLINE

MISSED = select(
    MISSED_DEADLINE.c.number,
    CONSUMER.c.name,
    CONSUMER.c.deployment_id,
    CONSUMER.c.automation_id,
    MISSED_DEADLINE.c.consumer,
    MISSED_DEADLINE.c.target_key,
    MISSED_DEADLINE.c.due,
    MISSED_DEADLINE.c.at,
    MISSED_DEADLINE.c.then,
    MISSED_DEADLINE.c.queued,
    MISSED_DEADLINE.c.missing,
).select_from(MISSED_DEADLINE.join(CONSUMER, CONSUMER.c.id == MISSED_DEADLINE.c.consumer))


class DeadlineReader:
    """Reads missed deadlines. All methods raise `LedgerError` if the ledger cannot be read."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    def missed(
        self, *, consumer: int | None = None, before: int | None = None, limit: int = 100
    ) -> list[MissedDeadlineRecord]:
        """Return missed deadlines, newest first. To page on, give the number of the last one as `before`."""
        query = MISSED.order_by(MISSED_DEADLINE.c.number.desc()).limit(limit)
        if consumer is not None:
            query = query.where(MISSED_DEADLINE.c.consumer == consumer)
        if before is not None:
            query = query.where(MISSED_DEADLINE.c.number < before)
        with self._connect() as connection:
            return [missed_from_row(row) for row in connection.execute(query)]


def missed_after(connection: Connection, number: int, limit: int) -> list[MissedDeadlineRecord]:
    """Return the missed deadlines after the one with this number, oldest first."""
    query = MISSED.where(MISSED_DEADLINE.c.number > number).order_by(MISSED_DEADLINE.c.number).limit(limit)
    return [missed_from_row(row) for row in connection.execute(query)]


def missed_from_row(row: Sequence[Any]) -> MissedDeadlineRecord:
    """Return the missed deadline in a row of `MISSED`."""
    number, name, deployment_id, automation_id, consumer, key, due, at, then, queued, missing = row
    missed = MissedDeadline(consumer, key_from_column(key), due, at, then, queued, tuple(missing))
    return MissedDeadlineRecord(number, name, deployment_id, automation_id, missed)
