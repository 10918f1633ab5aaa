"""Begin, stop and resume backfills of assets. The passes of the ledger carry them out (contract 8.18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from assetflow.core.freshness.backfilling import go_on, resume_backfill, stop_backfill
from assetflow.core.freshness.records import Backfill
from assetflow.core.values.consumers import Decision
from assetflow.crash_points import reach
from assetflow.errors import Conflict, UnknownBackfill
from assetflow.ledger.read.backfills import Planned
from assetflow.ledger.sql.bulk import Bulk, insert_rows
from assetflow.ledger.sql.freshness_tables import BACKFILL, BACKFILL_EDGE, BACKFILL_TARGET
from assetflow.ledger.sql.rows import BACKFILL_ITEMS, BACKFILLS
from assetflow.ledger.sql.tables import LEDGER
from assetflow.ledger.write.store import Operations, UnitOfWork

# The number of rows in one transaction, for which other writers wait.
AT_ONCE = 2_000

_ADD_BACKFILL = insert_rows(*BACKFILLS.columns)
_ADD_STEPS = insert_rows(BACKFILL_TARGET.c.backfill, *BACKFILL_ITEMS.columns)
_ADD_EDGES = insert_rows(*BACKFILL_EDGE.c)


class BackfillWriter(Operations):
    """Writes backfills."""

    def begin(self, wanted: Backfill, planned: Planned, now: datetime) -> tuple[Backfill, list[Decision]]:
        """Write a backfill in as many transactions as it needs, and let it begin with the last one.

        If the process dies before the last one, nothing of it has run, and nothing will.

        Parameters:
            wanted: the backfill; it gets the next free number.

        Returns:
            The backfill with its number, and its first decisions.
        """
        steps, edges = planned.steps, planned.edges
        with self._store.writes() as connection:
            backfill = _allocate(connection, replace(wanted, todo=len(steps)))
        number = backfill.number
        self._write(_ADD_STEPS, [(number, *BACKFILL_ITEMS.row(step)) for step in steps])
        self._write(_ADD_EDGES, [(number, above, below) for above, below in edges])
        reach("between-backfill-and-begin")
        with self._store.transaction(now) as unit:
            _prepare(unit)
            go_on(unit.state.freshness, backfill, planned.names, now)
            return backfill, self._store.keep_up_to_date(unit.state, [], now)

    def stop(self, number: int, now: datetime) -> list[Decision]:
        """Ask for nothing more of a backfill. Its runs continue; its other targets are free again.

        Returns:
            The decisions for targets that it held back.

        Raises:
            UnknownBackfill: no backfill has this number.
            Conflict: it has ended, or it never began.
        """
        with self._store.transaction(now) as unit:
            backfill, begun = _find(unit.connection, number)
            if not begun or backfill.ended is not None:
                raise Conflict(f"backfill {number} does not run", fix="`assetflow backfill ls` lists those that do")
            _prepare(unit)
            if backfill.stopped is None:
                stop_backfill(unit.state.freshness, backfill, now)
            return self._store.keep_up_to_date(unit.state, [], now)

    def resume(self, number: int, now: datetime) -> list[Decision]:
        """Run what is left of a backfill, and again what failed, with what that took off.

        Returns:
            The next decisions.

        Raises:
            UnknownBackfill: no backfill has this number.
            Conflict: it never began, or nothing of it is left.
        """
        with self._store.transaction(now) as unit:
            backfill, begun = _find(unit.connection, number)
            if not begun:
                raise Conflict(
                    f"backfill {number} never began: its command was ended while it wrote the targets",
                    fix="Give the command again",
                )
            if backfill.ended is not None and not (backfill.failed or backfill.removed):
                raise Conflict(f"backfill {number} is completed", fix="Begin another one")
            _prepare(unit)
            resume_backfill(unit.state.freshness, backfill, now)
            return self._store.keep_up_to_date(unit.state, [], now)

    def _write(self, adding: Bulk, rows: Sequence[tuple[Any, ...]]) -> None:
        for first in range(0, len(rows), AT_ONCE):
            with self._store.writes() as connection:
                adding.run(connection, rows[first : first + AT_ONCE])


def _prepare(unit: UnitOfWork) -> None:
    # A backfill goes through the flows, also if nothing is compared.
    unit.state.freshness.admit_all()
    unit.forget_elsewhere()


def _allocate(connection: Connection, wanted: Backfill) -> Backfill:
    # On Postgres, writers wait for each other here.
    connection.execute(select(LEDGER.c.number).with_for_update())
    last = connection.scalar(select(func.max(BACKFILL.c.number))) or 0
    backfill = replace(wanted, number=last + 1)
    _ADD_BACKFILL.run(connection, [BACKFILLS.row(backfill)])
    return backfill


def _find(connection: Connection, number: int) -> tuple[Backfill, bool]:
    """Return a backfill, and whether it has begun."""
    query = select(*BACKFILLS.columns, BACKFILL.c.begun).where(BACKFILL.c.number == number)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise UnknownBackfill.numbered(number)
    return BACKFILLS.read(row), row[-1] is not None
