"""Reading Prefect's logs for what the websocket did not tell: with an overlap, so that nothing falls in between.

Three sweeps: every few seconds a short way back, every minute farther (producers' clocks differ, events are stored
late), and once after the start over the whole window. What is known already costs little (see `intake`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from assetflow.evaluator.health import Health, heard
from assetflow.evaluator.intake import Intake
from assetflow.evaluator.ports import EvaluatorLedger, RecordingLog, UpdateLog
from assetflow.prefect_io.artifact_log import created
from assetflow.prefect_io.names import ASSET_UPDATED, MATERIALIZATION_SUCCEEDED

UPDATES = (ASSET_UPDATED, MATERIALIZATION_SUCCEEDED)
AHEAD = timedelta(days=1)


@dataclass(frozen=True)
class Sweeps:
    """How often Prefect's logs are read, and how far back.

    Attributes:
        every: between two short sweeps.
        overlap: how far a short sweep reaches behind the one before it.
        wide_every, wide_overlap: the same for the wide sweep.
        window: how far back the sweep after the start reaches; Prefect keeps events for seven days.
        save_every: how long a cursor may lag behind in the ledger.
    """

    every: timedelta = timedelta(seconds=3)
    overlap: timedelta = timedelta(seconds=30)
    wide_every: timedelta = timedelta(seconds=60)
    wide_overlap: timedelta = timedelta(minutes=15)
    window: timedelta = timedelta(days=7)
    save_every: timedelta = timedelta(seconds=10)


class CatchUp:
    """The sweeps over Prefect's artifacts and its event log.

    Parameters:
        floor: what is older was before the ledger's time and stays outside.
    """

    def __init__(
        self,
        artifacts: RecordingLog,
        events: UpdateLog,
        intake: Intake,
        ledger: EvaluatorLedger,
        health: Health,
        now: Callable[[], datetime],
        floor: datetime,
        sweeps: Sweeps | None = None,
    ) -> None:
        self._artifacts = artifacts
        self._events = events
        self._intake = intake
        self._ledger = ledger
        self._health = health
        self._now = now
        self._floor = floor
        self._sweeps = sweeps or Sweeps()
        self._wanted = asyncio.Event()
        self._artifacts_read = floor
        self._events_read = floor
        self._saved = floor

    def want(self) -> None:
        """Something may have been missed: sweep now."""
        self._wanted.set()

    async def start(self) -> None:
        """The first sweep, from where the evaluator before this one stopped.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        self._artifacts_read = await self._ledger.cursor("artifacts") or self._floor
        self._events_read = self._saved = await self._ledger.cursor("events") or self._floor
        await self.sweep(self._sweeps.overlap)

    async def whole_window(self) -> None:
        """One sweep over all that Prefect still has, back to the ledger's beginning."""
        await self.sweep(self._sweeps.window)
        self._health.up("catching up")

    async def run(self) -> None:
        """Sweep for ever."""
        wide = self._now() + self._sweeps.wide_every
        while True:
            self._wanted.clear()
            now = self._now()
            is_wide = now >= wide
            await self.sweep(self._sweeps.wide_overlap if is_wide else self._sweeps.overlap)
            self._health.up("reading Prefect's logs")
            if is_wide:
                wide = now + self._sweeps.wide_every
            await heard(self._wanted, self._sweeps.every.total_seconds())

    async def sweep(self, overlap: timedelta) -> None:
        """Read both logs from the last sweep less an overlap, hand over what they hold, oldest first, and wait for it.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        started = self._now()
        newest = self._artifacts_read
        found: list[tuple[datetime, Callable[[], None]]] = []
        async for artifact in self._artifacts.updates_since(self._back(self._artifacts_read, overlap)):
            newest = max(newest, created(artifact))
            found.append((created(artifact), partial(self._intake.take_artifact, artifact)))
        since = self._back(self._events_read, overlap)
        found += [
            (datetime.fromisoformat(event["occurred"]), partial(self._intake.hear, event))
            async for event in self._events.between(since, started + AHEAD, UPDATES)
        ]
        for _, hand_over in sorted(found, key=lambda each: each[0]):
            hand_over()
        await self._intake.settled()
        # The sweep over the whole window runs beside the short ones and ends later.
        self._artifacts_read = max(self._artifacts_read, newest)
        self._events_read = max(self._events_read, started)
        await self._save()

    def _back(self, moment: datetime, overlap: timedelta) -> datetime:
        return max(self._floor, moment - overlap)

    async def _save(self) -> None:
        if self._events_read - self._saved >= self._sweeps.save_every:
            await self._ledger.set_cursor("artifacts", self._artifacts_read)
            await self._ledger.set_cursor("events", self._events_read)
            self._saved = self._events_read
