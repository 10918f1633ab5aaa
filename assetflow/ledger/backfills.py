"""Backfills, and what became of target keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, func, literal_column, select

from assetflow.core.consumers import Consumer, Decision, backfill_id
from assetflow.ledger.among import among
from assetflow.ledger.book import LedgerBook
from assetflow.ledger.records import KeyDecisions
from assetflow.ledger.tables import DECISION, EVENT, NO_KEY

_BACKFILL: ColumnElement[str] = literal_column("'backfill'")
_STATES = {"waiting": "Waiting", "launched": "Running", "undeliverable": "Undeliverable"}


def make(
    book: LedgerBook, consumer: Consumer, attempts: Mapping[str, int], at_once: int, now: datetime
) -> Sequence[Decision]:
    """See `Writer.backfill`."""
    of_consumer = DECISION.c.consumer == consumer.id
    running = select(func.count()).where(of_consumer, DECISION.c.kind == _BACKFILL, DECISION.c.ended.is_(None))
    free = at_once - book.connection.execute(running).scalar_one()
    numbers = {backfill_id(consumer.deployment_id, key, attempt): key for key, attempt in attempts.items()}
    made = select(DECISION.c.id).where(among(DECISION.c.id, "ids"))
    there = set(book.connection.scalars(made, {"ids": list(numbers)}))
    chosen = [number for number in numbers if number not in there][: max(free, 0)]
    decisions = [
        Decision(number, consumer.id, consumer.deployment_id, numbers[number], (), now, "backfill") for number in chosen
    ]
    for decision in decisions:
        book.decide(decision)
    return decisions


def decisions_by_key(connection: Connection, consumer: int) -> dict[str, KeyDecisions]:
    """See `Reader.decisions_by_key`."""
    columns = (
        DECISION.c.target_key,
        DECISION.c.id,
        DECISION.c.kind,
        DECISION.c.status,
        DECISION.c.run_state,
        DECISION.c.flow_run_id,
        DECISION.c.made,
    )
    query: Any = select(*columns).where(DECISION.c.consumer == consumer, DECISION.c.target_key != NO_KEY)
    found: dict[str, KeyDecisions] = {}
    rows = cast("Sequence[Sequence[Any]]", connection.execute(query.order_by(DECISION.c.number)).all())
    for key, number, kind, status, run_state, run, made in rows:
        before = found.pop(key, None)
        backfills = (before.backfills if before else 0) + (kind == "backfill")
        found[key] = replace(KeyDecisions(number, _STATES.get(status) or run_state, run, made), backfills=backfills)
    return found


def keys_of(connection: Connection, uri: str) -> set[str]:
    """See `Reader.keys_of`."""
    query = select(EVENT.c.partition_key).where(EVENT.c.uri == uri, EVENT.c.partition_key.is_not(None)).distinct()
    return set(connection.scalars(query))
