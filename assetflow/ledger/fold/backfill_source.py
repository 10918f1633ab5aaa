"""What the book of chapter 8 reads of backfills. `FreshnessSource` says what each method returns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, exists, literal_column, select

from assetflow.core.freshness.records import Target
from assetflow.core.freshness.state import FreshnessSource
from assetflow.core.freshness.state.backfills import Backfill, BackfillItem
from assetflow.ledger.fold.backfill_rows import BACKFILL_COLUMNS, STEP_COLUMNS, backfill_from_row, step_from_row
from assetflow.ledger.sql.backfill_tables import BACKFILL, BACKFILL_EDGE, BACKFILL_TARGET
from assetflow.ledger.sql.functions import in_values
from assetflow.ledger.sql.rows import key_to_column

PAGE = 100

_T, _E = BACKFILL_TARGET.c, BACKFILL_EDGE.c
IS_LIVE = and_(BACKFILL.c.begun.is_not(None), BACKFILL.c.ended.is_(None))
HAS_BACKFILLS = exists(select(BACKFILL.c.number).where(IS_LIVE))
_LIVE = select(*BACKFILL_COLUMNS).where(IS_LIVE).order_by(BACKFILL.c.number)
_OF_TARGET = (
    select(*BACKFILL_COLUMNS)
    .join(BACKFILL_TARGET, _T.backfill == BACKFILL.c.number)
    .where(BACKFILL.c.begun.is_not(None), _T.consumer == bindparam("consumer"), _T.target_key == bindparam("key"))
)
_STEPS = select(*STEP_COLUMNS).where(_T.backfill == bindparam("backfill"))
_STEP = _STEPS.where(_T.consumer == bindparam("consumer"), _T.target_key == bindparam("key"))
_READY = (
    _STEPS.where(_T.state == literal_column("'todo'"), _T.waits == literal_column("0"), _T.place > bindparam("after"))
    .order_by(_T.place)
    .limit(PAGE)
)
_BELOW = (
    select(*STEP_COLUMNS)
    .join(BACKFILL_EDGE, and_(_E.backfill == _T.backfill, _E.below == _T.place))
    .where(_E.backfill == bindparam("backfill"), in_values(_E.above, "places"))
    .distinct()
)
_OF_CONSUMER = _STEPS.where(
    _T.consumer == bindparam("consumer"), _T.state.in_([literal_column("'todo'"), literal_column("'asked'")])
)
_TAKEN_OFF = _STEPS.where(_T.state.in_([literal_column("'failed'"), literal_column("'removed'")]))


class BackfillTables(FreshnessSource):
    """Reads backfills and their targets from the tables.

    Parameters:
        connection: returns the connection of the current transaction.
    """

    def __init__(self, connection: Callable[[], Connection]) -> None:
        self._connection = connection

    def backfills(self) -> Iterable[Backfill]:
        return [backfill_from_row(row) for row in self._connection().execute(_LIVE)]

    def backfills_of(self, target: Target) -> Iterable[Backfill]:
        of = {"consumer": target.consumer, "key": key_to_column(target.key)}
        return [backfill_from_row(row) for row in self._connection().execute(_OF_TARGET, of)]

    def step(self, backfill: int, target: Target) -> BackfillItem | None:
        found = self._steps(_STEP, backfill, consumer=target.consumer, key=key_to_column(target.key))
        return found[0] if found else None

    def ready_steps(self, backfill: int) -> Iterator[BackfillItem]:
        after = -1
        while page := self._steps(_READY, backfill, after=after):
            yield from page
            after = page[-1].place
            if len(page) < PAGE:
                return

    def steps_below(self, backfill: int, places: Collection[int]) -> Iterable[BackfillItem]:
        return self._steps(_BELOW, backfill, places=list(places)) if places else ()

    def steps_of(self, backfill: int, consumer: int) -> Iterable[BackfillItem]:
        return self._steps(_OF_CONSUMER, backfill, consumer=consumer)

    def steps_taken_off(self, backfill: int) -> Iterable[BackfillItem]:
        return self._steps(_TAKEN_OFF, backfill)

    def _steps(self, query: Select[Any], backfill: int, **values: Any) -> list[BackfillItem]:
        rows = self._connection().execute(query, {"backfill": backfill, **values})
        return [step_from_row(row) for row in rows]
