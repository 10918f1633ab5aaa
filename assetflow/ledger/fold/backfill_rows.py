"""Backfills and their targets, as rows of the tables and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assetflow.core.freshness.records import Target
from assetflow.core.freshness.state.backfills import Backfill, BackfillItem
from assetflow.ledger.sql.backfill_tables import BACKFILL, BACKFILL_TARGET
from assetflow.ledger.sql.rows import key_from_column, key_to_column

BACKFILL_KEY = (BACKFILL.c.number,)
BACKFILL_VALUES = (
    BACKFILL.c.made,
    BACKFILL.c.uri,
    BACKFILL.c.down,
    BACKFILL.c.concurrency,
    BACKFILL.c.made_by,
    BACKFILL.c.why,
    BACKFILL.c.stopped,
    BACKFILL.c.ended,
    BACKFILL.c.todo,
    BACKFILL.c.asked,
    BACKFILL.c.done,
    BACKFILL.c.failed,
    BACKFILL.c.removed,
)
BACKFILL_COLUMNS = (*BACKFILL_KEY, *BACKFILL_VALUES)
STEP_KEY = (BACKFILL_TARGET.c.backfill, BACKFILL_TARGET.c.place)
STEP_VALUES = (
    BACKFILL_TARGET.c.consumer,
    BACKFILL_TARGET.c.target_key,
    BACKFILL_TARGET.c.wave,
    BACKFILL_TARGET.c.waits,
    BACKFILL_TARGET.c.state,
    BACKFILL_TARGET.c.attempt,
)
STEP_COLUMNS = (BACKFILL_TARGET.c.place, *STEP_VALUES)


def backfill_to_row(backfill: Backfill) -> tuple[Any, ...]:
    """Return a backfill as a row of `BACKFILL_COLUMNS`."""
    asked = (backfill.number, backfill.made, backfill.uri, int(backfill.down), backfill.concurrency)
    counts = (backfill.todo, backfill.asked, backfill.done, backfill.failed, backfill.removed)
    return (*asked, backfill.by, backfill.why, backfill.stopped, backfill.ended, *counts)


def backfill_from_row(row: Sequence[Any]) -> Backfill:
    """Return the backfill in a row of `BACKFILL_COLUMNS`."""
    number, made, uri, down, *rest = row
    return Backfill(number, made, uri, bool(down), *rest)


def step_to_row(number: int, step: BackfillItem) -> tuple[Any, ...]:
    """Return a target of a backfill as a row of `STEP_KEY` and `STEP_VALUES`."""
    of = (number, step.place, step.target.consumer, key_to_column(step.target.key))
    return (*of, step.wave, step.waits, step.state, step.attempt)


def step_from_row(row: Sequence[Any]) -> BackfillItem:
    """Return the target of a backfill in a row of `STEP_COLUMNS`."""
    place, consumer, key, *rest = row
    return BackfillItem(place, Target(consumer, key_from_column(key)), *rest)
