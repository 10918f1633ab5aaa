"""Write the note "Why this ran" on the page of each decision's run.

The ledger stores which runs have their note, so none is lost if the process dies. Launching has priority: notes are
written while no decision waits for its run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, LedgerError, PrefectRefused, PrefectUnreachable
from assetflow.evaluator.health import Health, heard
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.runs.launch import Launch
from assetflow.ledger.read.explanations import decision_explanation
from assetflow.ledger.records import DecisionRecord
from assetflow.prefect_io.logs import EventLog
from assetflow.prefect_io.own_events import decision_made
from assetflow.prefect_io.rest import Json
from assetflow.prefect_io.run_notes import RunNotes

logger = logging.getLogger("assetflow.evaluator")

LOOK_EVERY = 5.0
AT_ONCE = 50


class NoteWriter:
    """Writes the notes of runs.

    Parameters:
        at_rest: returns when no decision waits to be launched.
    """

    def __init__(
        self, ledger: LedgerThread, board: RunNotes, health: Health, at_rest: Callable[[], Awaitable[None]]
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
        reader = self._ledger.reader.decisions
        missing = await self._ledger.call(reader.without_note, limit=AT_ONCE)
        if not missing:
            return False
        # After a crash, Prefect may have notes that the ledger does not know of.
        present = await self._board.present(
            {each.flow_run_id: each.consumer_name for each in missing if each.flow_run_id}
        )
        done: list[UUID] = []
        try:
            for each in missing:
                if each.flow_run_id not in present:
                    await self._at_rest()
                    await self._write(each)
                    reach("between-note-and-mark")
                done.append(each.id)
        finally:
            if done:
                await self._ledger.call(self._ledger.writer.decisions.noted, done, self._ledger.now())
        return True

    async def _write(self, missing: DecisionRecord) -> None:
        """Write one note. Log an error that would occur again, and go on without this note."""
        try:
            # Not in the ledger's thread: reading the events of a large decision takes long, and nothing waits for it.
            await self._board.write(await asyncio.to_thread(decision_explanation, self._ledger.reader, missing))
        except (PrefectUnreachable, LedgerError, OSError):
            raise
        except PrefectRefused as error:
            logger.warning("%s: no note on the page of run %s: %s", missing.consumer_name, missing.flow_run_id, error)
        except Exception:
            logger.exception("%s: the note of run %s could not be written", missing.consumer_name, missing.flow_run_id)


LARGEST_BATCH = 50
LONGEST_QUEUE = 5_000


class Announcer:
    """Publishes the events of launched decisions, in batches."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._queue: asyncio.Queue[Json] = asyncio.Queue(LONGEST_QUEUE)

    def announce(self, launch: Launch, flow_run: UUID) -> None:
        """Queue the event of a launched decision."""
        now = datetime.now(UTC).isoformat()
        try:
            self._queue.put_nowait(decision_made(launch.decision, launch.consumer, launch.automation, flow_run, now))
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
