"""Writes, for each run of a decision, the note on its page in Prefect that says why it ran.

The ledger knows which runs have none, so that none is forgotten when the process dies. Launching comes first: notes are
written while nobody waits for a run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from uuid import UUID

from assetflow.crash_points import reach
from assetflow.errors import LedgerError, PrefectRefused, PrefectUnreachable
from assetflow.evaluator.health import Health, heard
from assetflow.evaluator.ports import EvaluatorLedger, NoteBoard
from assetflow.prefect_io.run_notes import Noteless, run_note

logger = logging.getLogger("assetflow.evaluator")

LOOK_EVERY = 5.0
AT_ONCE = 50


class NoteWriter:
    """Writes the notes of runs.

    Parameters:
        at_rest: returns when no decision waits to be launched.
        ui_url: where assetflow's own pages are; empty if there are none to link to.
    """

    def __init__(
        self,
        ledger: EvaluatorLedger,
        board: NoteBoard,
        health: Health,
        at_rest: Callable[[], Awaitable[None]],
        ui_url: str = "",
    ) -> None:
        self._ledger = ledger
        self._board = board
        self._health = health
        self._at_rest = at_rest
        self._ui_url = ui_url
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """There may be a run without a note."""
        self._wake.set()

    async def run(self) -> None:
        """Write for ever."""
        while True:
            self._wake.clear()
            while await self._write_some():
                pass
            self._health.up("notes of runs")
            await heard(self._wake, LOOK_EVERY)

    async def _write_some(self) -> bool:
        """Write the next few notes; whether there were any to write."""
        await self._at_rest()
        missing = await self._ledger.without_note(AT_ONCE)
        if not missing:
            return False
        # After a crash some are there that the ledger does not know of.
        there = await self._board.present(missing)
        done: list[UUID] = []
        try:
            for note in missing:
                if note.flow_run not in there:
                    await self._at_rest()
                    await self._write(note)
                    reach("between-note-and-mark")
                done.append(note.decision)
        finally:
            await self._ledger.noted(done)
        return True

    async def _write(self, note: Noteless) -> None:
        """Write one note; what will never succeed is told and left."""
        try:
            explanation = await self._ledger.explain(note.decision)
            await self._board.write(run_note(explanation, self._ui_url))
        except (PrefectUnreachable, LedgerError, OSError):
            raise
        except PrefectRefused as error:
            logger.warning("%s: no note on the page of run %s: %s", note.consumer, note.flow_run, error)
        except Exception:
            logger.exception("%s: the note of run %s could not be written", note.consumer, note.flow_run)
