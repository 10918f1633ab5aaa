"""From decisions to flow runs: each decision without a run gets one, under its own id, oldest first.

The decision is committed before, the run is marked after; in between the process may die, and the next one asks Prefect
for a run with the same idempotency key. That is all there is to "exactly one run".
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

from assetflow.core.codec import RunContext, event_to_json
from assetflow.crash_points import reach
from assetflow.errors import LedgerError, PrefectRefused, PrefectUnreachable
from assetflow.evaluator.health import Backoff, Health
from assetflow.evaluator.ports import EvaluatorLedger, Launch, RecordingLog, RunMaker

logger = logging.getLogger("assetflow.evaluator")

# Measured on SQLite: one after the other makes 30 runs a second, two at once 10, most of them waiting after a 503.
AT_ONCE = 1
LOOK_EVERY = 0.2
LARGEST_CONTEXT = 64 * 1024
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 30.0
FAILURES_UNTOLD = 3


class Launcher:
    """Creates the runs of waiting decisions.

    Parameters:
        on_launched: told of each decision that got its run.
    """

    def __init__(
        self,
        ledger: EvaluatorLedger,
        runs: RunMaker,
        artifacts: RecordingLog,
        health: Health,
        on_launched: Callable[[Launch, UUID], None],
        at_once: int = AT_ONCE,
    ) -> None:
        self._ledger = ledger
        self._runs = runs
        self._artifacts = artifacts
        self._health = health
        self._on_launched = on_launched
        self._at_once = at_once
        self._wake = asyncio.Event()
        self._rests = asyncio.Event()
        self._at_work: dict[UUID, asyncio.Task[None]] = {}
        self._again: dict[UUID, tuple[float, Backoff]] = {}

    def wake(self) -> None:
        """There may be a new decision."""
        self._wake.set()

    def retry_now(self) -> None:
        """Prefect is back: whatever waits for its next attempt gets it now."""
        self._again = {decision: (0.0, backoff) for decision, (_, backoff) in self._again.items()}
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        return not self._at_work

    async def at_rest(self) -> None:
        """Return when no decision can be launched now; those that wait for their next attempt do not count."""
        await self._rests.wait()

    async def run(self) -> None:
        """Launch for ever. Other processes write to the ledger too, so it is looked at five times a second."""
        try:
            while True:
                self._wake.clear()
                await self._start_what_waits()
                self._health.up("launching")
                try:
                    await asyncio.wait_for(self._wake.wait(), LOOK_EVERY)
                except TimeoutError:
                    continue
        finally:
            for task in self._at_work.values():
                task.cancel()
            await asyncio.gather(*self._at_work.values(), return_exceptions=True)

    async def _start_what_waits(self) -> None:
        free = self._at_once - len(self._at_work)
        if free <= 0:
            return
        self._rests.clear()
        waiting = await self._ledger.waiting(free + len(self._at_work) + len(self._again))
        ids = {launch.decision.id for launch in waiting}
        self._again = {decision: when for decision, when in self._again.items() if decision in ids}
        for launch in [launch for launch in waiting if self._is_due(launch.decision.id)][:free]:
            self._at_work[launch.decision.id] = asyncio.create_task(self._launch(launch))
        if not self._at_work:
            self._rests.set()

    def _is_due(self, decision: UUID) -> bool:
        if decision in self._at_work:
            return False
        return decision not in self._again or time.monotonic() >= self._again[decision][0]

    async def _launch(self, launch: Launch) -> None:
        decision = launch.decision
        try:
            await self._create_and_mark(launch)
            self._again.pop(decision.id, None)
        except (PrefectUnreachable, LedgerError, OSError) as error:
            await self._try_again(launch, error)
        except Exception as error:
            logger.exception("decision %s could not be launched", decision.id)
            await self._try_again(launch, error)
        finally:
            self._at_work.pop(decision.id, None)
            self._wake.set()

    async def _create_and_mark(self, launch: Launch) -> None:
        decision = launch.decision
        try:
            run = await self._runs.create(decision, await self._context(launch), launch.automation)
        except PrefectRefused as error:
            await self._ledger.undeliverable(decision.id, str(error))
            logger.error("%s: no run for decision %s: %s", launch.consumer, decision.id, error)
            return
        reach("between-launch-and-mark")
        await self._ledger.launched(decision.id, run)
        reach("between-mark-and-announcement")
        logger.info("%s: started run %s, updates consumed: %d", launch.consumer, run, len(decision.events))
        self._on_launched(launch, run)

    async def _context(self, launch: Launch) -> RunContext:
        decision = launch.decision
        events = [event_to_json(event) for event in decision.events]
        if len(json.dumps(events)) <= LARGEST_CONTEXT:
            return RunContext(decision.id, launch.consumer, decision.target_key, decision.events)
        artifact = UUID(await self._artifacts.keep_events(decision))
        return RunContext(decision.id, launch.consumer, decision.target_key, None, artifact)

    async def _try_again(self, launch: Launch, error: Exception) -> None:
        decision = launch.decision.id
        _, backoff = self._again.get(decision, (0.0, Backoff(FIRST_PAUSE, LONGEST_PAUSE)))
        # A busy server answers 503 now and then; that is not worth a word.
        if backoff.failures == FAILURES_UNTOLD:
            logger.warning("%s: decision %s waits for its run: %s", launch.consumer, decision, error)
        self._again[decision] = (time.monotonic() + backoff.next(), backoff)
        if backoff.failures > FAILURES_UNTOLD:
            with suppress(LedgerError):
                await self._ledger.attempt_failed(decision, str(error))
