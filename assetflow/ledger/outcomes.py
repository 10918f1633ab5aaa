"""What becomes of decisions: launched, given up, replayed, ended."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Update, or_, select, update

from assetflow.core.consumers import Decision
from assetflow.core.fold import evaluate_consumer
from assetflow.errors import UnknownEvent
from assetflow.ledger.book import LedgerBook
from assetflow.ledger.rows import key_from_column
from assetflow.ledger.tables import DECISION


def launched(connection: Connection, decision_id: UUID, flow_run_id: UUID, now: datetime) -> None:
    """See `Writer.launched`."""
    _known(connection, decision_id)
    waiting = _the(decision_id).where(DECISION.c.status != "launched", DECISION.c.status != "ended")
    values = {"status": "launched", "flow_run_id": flow_run_id, "launched": now, "ended": None, "error": ""}
    connection.execute(waiting.values(values))


def attempt_failed(connection: Connection, decision_id: UUID, error: str) -> None:
    """See `Writer.attempt_failed`."""
    connection.execute(_the(decision_id).values(attempts=DECISION.c.attempts + 1, error=error))


def undeliverable(book: LedgerBook, decision_id: UUID, reason: str, now: datetime) -> list[Decision]:
    """See `Writer.undeliverable`."""
    consumer, key = _known(book.connection, decision_id)
    waiting = _the(decision_id).where(DECISION.c.status == "waiting")
    book.connection.execute(waiting.values(status="undeliverable", error=reason, ended=now))
    return _pass_after_end(book, consumer, key, now)


def replay(connection: Connection, decision_id: UUID) -> None:
    """See `Writer.replay`."""
    given_up = _the(decision_id).where(DECISION.c.status == "undeliverable")
    changed = connection.execute(given_up.values(status="waiting", error="", attempts=0, ended=None))
    if not changed.rowcount:
        raise UnknownEvent(
            f"there is no undeliverable decision {decision_id}", fix="`assetflow decisions ls` lists the decisions"
        )


def ended(
    book: LedgerBook, state: str, now: datetime, *, flow_run_id: UUID | None, decision_id: UUID | None
) -> list[Decision] | None:
    """See `Writer.ended`."""
    conditions: list[ColumnElement[bool]] = []
    if flow_run_id is not None:
        conditions.append(DECISION.c.flow_run_id == flow_run_id)
    if decision_id is not None:
        conditions.append(DECISION.c.id == decision_id)
    query = select(DECISION.c.number, DECISION.c.consumer, DECISION.c.target_key)
    row = book.connection.execute(query.where(or_(*conditions), DECISION.c.ended.is_(None))).one_or_none()
    if row is None:
        return None
    values: dict[str, Any] = {"status": "ended", "ended": now, "run_state": state}
    book.connection.execute(update(DECISION).where(DECISION.c.number == row[0]).values(values))
    return _pass_after_end(book, row[1], key_from_column(row[2]), now)


def _pass_after_end(book: LedgerBook, number: int, key: str | None, now: datetime) -> list[Decision]:
    consumer = book.roster.find(number)
    # Only with `coalesce` does a run's end let a decision be made (4.7).
    if consumer is None or not consumer.coalesces:
        return []
    return evaluate_consumer(book, consumer, [key], now)


def _the(decision_id: UUID) -> Update:
    return update(DECISION).where(DECISION.c.id == decision_id)


def _known(connection: Connection, decision_id: UUID) -> tuple[int, str | None]:
    query = select(DECISION.c.consumer, DECISION.c.target_key).where(DECISION.c.id == decision_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise UnknownEvent(f"there is no decision {decision_id}", fix="`assetflow decisions ls` lists the decisions")
    return row[0], key_from_column(row[1])
