"""Write the note "Why this ran" on the page of each decision's run.

The ledger stores which runs have their note, so none is lost if the process dies. Launching has priority: notes are
written while no decision waits for its run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from uuid import UUID

from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, LedgerError, PrefectRefused, PrefectUnreachable
from assetflow.evaluator.health import Health, heard
from assetflow.evaluator.ports import EvaluatorLedger, Json, Launch, NoteBoard, RunWithoutNote, UpdateLog

logger = logging.getLogger("assetflow.evaluator")

LOOK_EVERY = 5.0
AT_ONCE = 50


class NoteWriter:
    """Writes the notes of runs.

    Parameters:
        at_rest: returns when no decision waits to be launched.
    """

    def __init__(
        self, ledger: EvaluatorLedger, board: NoteBoard, health: Health, at_rest: Callable[[], Awaitable[None]]
    ) -> None:
        self._ledger = ledger
        self._board = board
        self._health = health
        self._at_rest = at_rest
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look now: a run may need its note."""
        self._wake.set()

    async def run(self) -> None:
        """Write the missing notes, until cancelled.

        Raises:
            PrefectUnreachable, LedgerError: call it again.
        """
        while True:
            self._wake.clear()
            while await self._write_some():
                pass
            self._health.up("notes of runs")
            await heard(self._wake, LOOK_EVERY)

    async def _write_some(self) -> bool:
        """Write the next few notes. Return False if none was missing."""
        await self._at_rest()
        missing = await self._ledger.without_note(AT_ONCE)
        if not missing:
            return False
        # After a crash, Prefect may have notes that the ledger does not know of.
        present = await self._board.present({each.flow_run: each.consumer for each in missing})
        done: list[UUID] = []
        try:
            for each in missing:
                if each.flow_run not in present:
                    await self._at_rest()
                    await self._write(each)
                    reach("between-note-and-mark")
                done.append(each.decision)
        finally:
            await self._ledger.noted(done)
        return True

    async def _write(self, missing: RunWithoutNote) -> None:
        """Write one note. Log an error that would occur again, and go on without this note."""
        try:
            await self._board.write(await self._ledger.explain(missing.decision))
        except (PrefectUnreachable, LedgerError, OSError):
            raise
        except PrefectRefused as error:
            logger.warning("%s: no note on the page of run %s: %s", missing.consumer, missing.flow_run, error)
        except Exception:
            logger.exception("%s: the note of run %s could not be written", missing.consumer, missing.flow_run)


LARGEST_BATCH = 50
LONGEST_QUEUE = 5_000


class Announcer:
    """Publishes the events of launched decisions, in batches.

    Parameters:
        to_event: returns the event that announces a decision and its run.
    """

    def __init__(self, events: UpdateLog, to_event: Callable[[Launch, UUID], Json]) -> None:
        self._events = events
        self._to_event = to_event
        self._queue: asyncio.Queue[Json] = asyncio.Queue(LONGEST_QUEUE)

    def announce(self, launch: Launch, flow_run: UUID) -> None:
        """Queue the event of a launched decision."""
        try:
            self._queue.put_nowait(self._to_event(launch, flow_run))
        except asyncio.QueueFull:
            logger.debug("decision %s is not announced: too many are queued", launch.decision.id)

    async def run(self) -> None:
        """Publish what is queued, until cancelled."""
        while True:
            batch = [await self._queue.get()]
            while len(batch) < LARGEST_BATCH and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            try:
                await self._events.publish(batch)
            except AssetflowError as error:
                logger.debug("%d decisions are not announced: %s", len(batch), error)
