"""From decisions to flow runs: each decision without a run gets one, under its own id, oldest first.

The decision is committed before, the run is marked after; in between the process may die, and the next one asks Prefect
for a run with the same idempotency key. That is all there is to "exactly one run".

The runs of a consumer are made in the order of its decisions (contract 4.3): as long as Prefect does not give one its
run, the younger ones of the same consumer wait behind it. Those of other consumers go on.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from uuid import UUID

from assetflow.core.codec import RunContext, event_to_json
from assetflow.core.consumers import Decision
from assetflow.crash_points import reach
from assetflow.errors import LedgerError, PrefectRefused, PrefectUnreachable
from assetflow.evaluator.health import ENDS_ALL, Backoff, Health, heard
from assetflow.evaluator.meters import LAUNCH_SECONDS
from assetflow.evaluator.ports import EvaluatorLedger, Launch, RecordingLog, RunMaker
from assetflow.tracing import current_traceparent, span

logger = logging.getLogger("assetflow.evaluator")

LOOK_EVERY = 0.2
LARGEST_CONTEXT = 64 * 1024
# Prefect's SQLite refuses a run with 503 while something else writes, which takes it some milliseconds.
FIRST_PAUSE = 0.02
LONGEST_PAUSE = 30.0
FAILURES_UNTOLD = 6
MOST_TRACES = 100


class Launcher:
    """Creates the runs of waiting decisions, one after the other.

    Measured on SQLite: that makes 30 runs a second, two at once 10, most of them waiting after a 503.

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
    ) -> None:
        self._ledger = ledger
        self._runs = runs
        self._artifacts = artifacts
        self._health = health
        self._on_launched = on_launched
        self._wake = asyncio.Event()
        self._rests = asyncio.Event()
        # By consumer: when its oldest decision is tried again.
        self._again: dict[int, tuple[float, Backoff]] = {}

    def wake(self) -> None:
        """There may be a new decision."""
        self._wake.set()

    def retry_now(self) -> None:
        """Prefect is back: whatever waits for its next attempt gets it now."""
        self._again = {consumer: (0.0, backoff) for consumer, (_, backoff) in self._again.items()}
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        return self._rests.is_set()

    async def at_rest(self) -> None:
        """Return when no decision can be launched now or soon; those that have failed for longer do not count."""
        await self._rests.wait()

    async def run(self) -> None:
        """Launch for ever. Other processes write to the ledger too, so it is looked at five times a second."""
        while True:
            self._wake.clear()
            self._rests.clear()
            while launch := await self._next():
                self._health.up("launching")
                await self._launch(launch)
            self._health.up("launching")
            pause = self._until_next_attempt()
            if pause >= LOOK_EVERY:
                self._rests.set()
            await heard(self._wake, min(pause, LOOK_EVERY))

    async def _next(self) -> Launch | None:
        """The oldest decision that can be launched now."""
        now = time.monotonic()
        held_up = [consumer for consumer, (due, _) in self._again.items() if now < due]
        launch = next(iter(await self._ledger.waiting(1, held_up)), None)
        if launch is None:
            # What else was to be tried again is gone: an operator took it out.
            self._again = {consumer: each for consumer, each in self._again.items() if consumer in held_up}
        return launch

    def _until_next_attempt(self) -> float:
        now = time.monotonic()
        return max(0.0, min((due - now for due, _ in self._again.values()), default=inf))

    async def _launch(self, launch: Launch) -> None:
        try:
            await self._create_and_mark(launch)
            self._again.pop(launch.decision.consumer, None)
        except ENDS_ALL:
            raise
        except (PrefectUnreachable, LedgerError, OSError) as error:
            await self._try_again(launch, error)
        except Exception as error:
            logger.exception("decision %s could not be launched", launch.decision.id)
            await self._try_again(launch, error)

    async def _create_and_mark(self, launch: Launch) -> None:
        decision = launch.decision
        about = {"consumer": launch.consumer, "decision": str(decision.id)}
        try:
            with span("assetflow.decision", _traces(decision), {f"assetflow.{key}": about[key] for key in about}):
                run = await self._runs.create(decision, await self._context(launch), launch.automation)
        except PrefectRefused as error:
            await self._ledger.undeliverable(decision.id, str(error))
            logger.error("%s: no run for decision %s: %s", launch.consumer, decision.id, error, extra=about)
            return
        reach("between-launch-and-mark")
        await self._ledger.launched(decision.id, run)
        reach("between-mark-and-announcement")
        LAUNCH_SECONDS.observe((datetime.now(UTC) - decision.made).total_seconds())
        about |= {"flow_run": str(run)}
        logger.info("%s: started run %s, updates consumed: %d", launch.consumer, run, len(decision.events), extra=about)
        self._on_launched(launch, run)

    async def _context(self, launch: Launch) -> RunContext:
        decision, trace = launch.decision, current_traceparent()
        events = [event_to_json(event) for event in decision.events]
        if len(json.dumps(events)) <= LARGEST_CONTEXT:
            return RunContext(decision.id, launch.consumer, decision.target_key, decision.events, traceparent=trace)
        artifact = UUID(await self._artifacts.keep_events(decision))
        return RunContext(decision.id, launch.consumer, decision.target_key, None, artifact, traceparent=trace)

    async def _try_again(self, launch: Launch, error: Exception) -> None:
        decision, consumer = launch.decision.id, launch.decision.consumer
        _, backoff = self._again.get(consumer, (0.0, Backoff(FIRST_PAUSE, LONGEST_PAUSE)))
        # A busy server answers 503 now and then; that is not worth a word.
        if backoff.failures == FAILURES_UNTOLD:
            about = {"consumer": launch.consumer, "decision": str(decision)}
            logger.warning("%s: decision %s waits for its run: %s", launch.consumer, decision, error, extra=about)
        self._again[consumer] = (time.monotonic() + backoff.next(), backoff)
        if backoff.failures > FAILURES_UNTOLD:
            with suppress(LedgerError):
                await self._ledger.attempt_failed(decision, str(error))


def _traces(decision: Decision) -> list[str]:
    """The spans in which the consumed events were made; the last one completed the condition."""
    return [event.origin.traceparent for event in decision.events[-MOST_TRACES:]]
