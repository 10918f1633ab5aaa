"""Create the flow runs of decisions, oldest first. Each run has its decision's id as idempotency key.

The ledger has committed the decision before Prefect is asked for the run, and stores the run afterwards. If the process
dies in between, the next one asks Prefect with the same key, and gets the run that exists. So each decision has exactly
one run. Contract 4.6.

The runs of a consumer are created in the order of its decisions. While Prefect creates no run for one of them, its
later decisions wait, and other consumers go on. Contract 4.3. A decision whose request cannot even be written is given
up after some attempts: it cannot have a run.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import inf
from uuid import UUID

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector

from assetflow.core.freshness.records import Asked
from assetflow.core.values.consumers import Automation, Decision
from assetflow.core.values.words import shown
from assetflow.core.wire import RunContext, events_to_text
from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, LedgerError, PrefectRefused, PrefectUnreachable, Unsendable
from assetflow.evaluator.health import ENDS_ALL, REASONS_LOGGED, Backoff, Health, heard
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger.read.reader import Reader
from assetflow.prefect_io.automation_text import shown_by
from assetflow.prefect_io.flow_runs import FlowRuns
from assetflow.prefect_io.logs import ArtifactLog
from assetflow.prefect_io.open_runs import OpenRuns
from assetflow.tracing import current_traceparent, span

logger = logging.getLogger("assetflow.evaluator")

LOOK_EVERY = 0.2
LARGEST_CONTEXT = 64 * 1024
# On SQLite, Prefect answers 503 while something else writes, which takes some milliseconds.
FIRST_PAUSE = 0.02
LONGEST_PAUSE = 30.0
# A busy server creates some runs and refuses others. Even one that it refuses again and again waits no longer.
LONGEST_PAUSE_WHILE_BUSY = 1.0
# The seconds for which a created run shows that Prefect is busy and not down.
SHOWN_BY_A_RUN = 60.0
FAILURES_NOT_LOGGED = 6
ATTEMPTS_TO_SEND = 5
CONSUMERS_AT_ONCE = 16
# Seconds after which the launcher counts as at rest although an attempt is under way.
SLOW = 1.0
# Seconds after which a failed attempt is logged although it is among the first.
HUNG = 10.0
MOST_TRACES = 100

# The metrics that only the launching process can measure; `/metrics` reads all others from the ledger.
METRICS = CollectorRegistry()
ProcessCollector(registry=METRICS)
_LAUNCH_SECONDS = Histogram(
    "assetflow_launch_seconds",
    "From a decision to its run, of the runs that this process has created.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
    registry=METRICS,
)


@dataclass(frozen=True)
class Launch:
    """A decision without a run, the name of its consumer, and the automation that shows the consumer's schedule.

    Attributes:
        asked: what an Eager or Lazy flow is asked for; `None` for other decisions.
    """

    decision: Decision
    consumer: str
    automation: Automation | None = None
    asked: Asked | None = None


@dataclass
class _Attempts:
    """The attempts to launch the oldest decision of a consumer.

    Attributes:
        due: when to try again, by the monotonic clock.
        is_busy: Prefect was too busy for the last attempt.
        unsent: the number of attempts in a row whose request could not be written.
        logged: the reasons that the log has.
    """

    decision: UUID
    due: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(FIRST_PAUSE, LONGEST_PAUSE))
    is_busy: bool = False
    unsent: int = 0
    logged: set[str] = field(default_factory=set[str])


class Launcher:
    """Creates the runs of waiting decisions: one at a time for each consumer, for several consumers concurrently.

    Parameters:
        runs: creates the runs, and limits how many it creates at a time.
        on_launched: called with each launched decision and its run.
    """

    def __init__(
        self,
        ledger: LedgerThread,
        runs: FlowRuns,
        artifacts: ArtifactLog,
        health: Health,
        on_launched: Callable[[Launch, UUID], None],
    ) -> None:
        self._ledger = ledger
        self._writer = ledger.writer.decisions
        self._runs = runs
        self._artifacts = artifacts
        self._health = health
        self._on_launched = on_launched
        self._wake = asyncio.Event()
        self._at_rest = asyncio.Event()
        # By consumer: the attempts that failed, and the start of the one that is under way.
        self._attempts: dict[int, _Attempts] = {}
        self._under_way: dict[int, float] = {}
        # When the last run was created.
        self._created = -inf

    def wake(self) -> None:
        """Look now: there may be a new decision."""
        self._wake.set()

    def retry_now(self) -> None:
        """Try all waiting decisions now, because Prefect answers again."""
        for attempts in self._attempts.values():
            attempts.due = 0.0
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        """True if no decision can be launched now or soon."""
        return self._at_rest.is_set()

    async def at_rest(self) -> None:
        """Return when no decision can be launched now or soon.

        This leaves out decisions that wait for a later attempt, and those whose attempt hangs.
        """
        await self._at_rest.wait()

    async def run(self) -> None:
        """Launch decisions until cancelled. Read the ledger at each wake-up, and every 0.2 s if nobody wakes it.

        Raises:
            LeaseLost, LedgerForeign: another evaluator has taken over.
            LedgerError: call it again.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self._wake.clear()
                    await self._start_all(tasks)
                    self._health.up("launching")
                    pause = self._until_next_attempt()
                    if pause >= LOOK_EVERY and not self._is_busy():
                        self._at_rest.set()
                    await heard(self._wake, min(pause, LOOK_EVERY))
        except ExceptionGroup as group:
            ends, others = group.split(ENDS_ALL)
            raise (ends or others or group).exceptions[0] from None

    async def _start_all(self, tasks: asyncio.TaskGroup) -> None:
        """Start an attempt for each consumer that has one due, the oldest decision first."""
        while len(self._under_way) < CONSUMERS_AT_ONCE and (launch := await self._next()):
            self._at_rest.clear()
            self._under_way[launch.decision.consumer] = time.monotonic()
            tasks.create_task(self._launch(launch))

    def _is_busy(self) -> bool:
        """Return True if an attempt is under way that does not hang."""
        now = time.monotonic()
        return any(now - began < SLOW for began in self._under_way.values())

    async def _next(self) -> Launch | None:
        """Return the oldest decision that can be launched now, or `None`."""
        now = time.monotonic()
        pausing = {consumer for consumer, attempts in self._attempts.items() if now < attempts.due}
        besides = pausing | self._under_way.keys()
        launch = await self._ledger.call(next_launch, self._ledger.reader, besides)
        if launch is None:
            # A user has given up the other decisions that had failed attempts.
            self._attempts = {each: attempts for each, attempts in self._attempts.items() if each in besides}
        return launch

    def _until_next_attempt(self) -> float:
        now = time.monotonic()
        waiting = (attempts.due for each, attempts in self._attempts.items() if each not in self._under_way)
        return max(0.0, min((due - now for due in waiting), default=inf))

    async def _launch(self, launch: Launch) -> None:
        consumer = launch.decision.consumer
        try:
            await self._create_and_mark(launch)
            self._attempts.pop(consumer, None)
            self._shorten_pauses_while_busy()
        except ENDS_ALL:
            raise
        except Exception as error:
            await self._try_again(launch, error)
        finally:
            self._under_way.pop(consumer, None)
            self._wake.set()

    def _shorten_pauses_while_busy(self) -> None:
        """Ask again soon for what a busy Prefect has refused, because it has just created another run."""
        now = self._created = time.monotonic()
        for attempts in self._attempts.values():
            if attempts.is_busy:
                attempts.due = min(attempts.due, now + LONGEST_PAUSE_WHILE_BUSY)

    def _pause(self, attempts: _Attempts) -> float:
        pause, now = attempts.backoff.next(), time.monotonic()
        is_short = attempts.is_busy and now - self._created < SHOWN_BY_A_RUN
        return min(pause, LONGEST_PAUSE_WHILE_BUSY) if is_short else pause

    async def _create_and_mark(self, launch: Launch) -> None:
        decision = launch.decision
        about = {"consumer": launch.consumer, "decision": str(decision.id)}
        try:
            with span("assetflow.decision", _traces(decision), {f"assetflow.{key}": about[key] for key in about}):
                run = await self._create(launch)
        except PrefectRefused as error:
            await self._give_up(launch, shown(error))
            return
        reach("between-launch-and-mark")
        await self._ledger.call(self._writer.launched, decision.id, run, self._ledger.now())
        reach("between-mark-and-announcement")
        _LAUNCH_SECONDS.observe((datetime.now(UTC) - decision.made).total_seconds())
        about |= {"flow_run": str(run)}
        logger.info("%s: started run %s, updates consumed: %d", launch.consumer, run, len(decision.events), extra=about)
        self._on_launched(launch, run)

    async def _create(self, launch: Launch) -> UUID:
        try:
            context = await self._context(launch)
        except (AssetflowError, OSError):
            raise
        except Exception as error:
            raise Unsendable(f"the context of its run cannot be made: {error!r}") from error
        return await self._runs.create(launch.decision, context, launch.automation)

    async def _context(self, launch: Launch) -> RunContext:
        decision = launch.decision
        context = RunContext(
            decision.id,
            launch.consumer,
            decision.target_key,
            decision.events,
            traceparent=current_traceparent(),
            asked=launch.asked,
            made=decision.made,
            opening=decision.opening,
        )
        if len(events_to_text(decision.events)) <= LARGEST_CONTEXT:
            return context
        artifact = UUID(await self._artifacts.keep_events(decision, launch.consumer))
        return replace(context, events=None, artifact=artifact)

    async def _try_again(self, launch: Launch, error: Exception) -> None:
        """Plan the next attempt after a failed one. Give up a decision whose request cannot be written."""
        decision, consumer = launch.decision.id, launch.decision.consumer
        attempts = self._attempts.get(consumer)
        if attempts is None or attempts.decision != decision:
            attempts = self._attempts[consumer] = _Attempts(decision)
        reason = shown(str(error) or repr(error))
        attempts.is_busy = isinstance(error, PrefectUnreachable) and error.is_busy
        attempts.unsent = attempts.unsent + 1 if isinstance(error, Unsendable) else 0
        # Do not log the first failures: a busy server answers 503 now and then.
        hung = time.monotonic() - self._under_way.get(consumer, inf) >= HUNG
        is_reported = attempts.backoff.failures >= FAILURES_NOT_LOGGED or hung
        if is_reported or not isinstance(error, AssetflowError | OSError):
            self._log(launch, attempts, error, reason)
        with suppress(LedgerError):
            if attempts.unsent >= ATTEMPTS_TO_SEND:
                await self._give_up(launch, f"given up after {attempts.unsent} attempts that sent nothing: {reason}")
                self._attempts.pop(consumer, None)
                return
            if is_reported:
                await self._ledger.call(self._writer.attempt_failed, decision, reason)
        attempts.due = time.monotonic() + self._pause(attempts)

    def _log(self, launch: Launch, attempts: _Attempts, error: Exception, reason: str) -> None:
        """Log why a decision waits: each reason once, an unexpected error with its traceback."""
        if reason in attempts.logged or len(attempts.logged) == REASONS_LOGGED:
            return
        attempts.logged.add(reason)
        about = {"consumer": launch.consumer, "decision": str(attempts.decision)}
        trace = None if isinstance(error, AssetflowError | OSError) else error
        logger.warning(
            "%s: decision %s waits for its run: %s",
            launch.consumer,
            attempts.decision,
            reason,
            extra=about,
            exc_info=trace,
        )

    async def _give_up(self, launch: Launch, reason: str) -> None:
        decision = launch.decision.id
        now, late = self._ledger.now(), self._ledger.is_late
        await self._ledger.call(self._writer.undeliverable, decision, reason, now, late=late)
        about = {"consumer": launch.consumer, "decision": str(decision)}
        logger.error("%s: no run for decision %s: %s", launch.consumer, decision, reason, extra=about)


def next_launch(reader: Reader, besides: Collection[int] = ()) -> Launch | None:
    """Return the oldest decision without a run, except those of the consumers in `besides`; `None` if there is none."""
    for each, events in reader.decisions.waiting(limit=1, besides=besides):
        consumer = reader.consumers.named(each.consumer_name)
        automation = shown_by(each.automation_id, None if consumer is None else consumer.consumer)
        return Launch(
            each.with_events(events), each.consumer_name, automation, reader.decisions.asked([each]).get(each.id)
        )
    return None


def _traces(decision: Decision) -> list[str]:
    """Return the spans in which the consumed events were made, at most the last 100."""
    return [event.origin.traceparent for event in decision.events[-MOST_TRACES:]]


READING_ENDS = "reading how runs ended"
# The time of the newest final state that is stored, by Prefect's clock.
CURSOR = "final states"
LOOK_AT_ENDS_EVERY = 60.0
# Many runs that end one after the other are read together.
REST = 3.0
# How much later than its time a final state may be visible; more after a time in which nobody looked.
OVERLAP = timedelta(seconds=20)
LONG_OVERLAP = timedelta(minutes=15)


class FinalStates:
    """Stores how runs have ended.

    Parameters:
        floor: the beginning of the ledger. Runs that ended before are left out.
        on_ended: called when new final states are stored.
    """

    def __init__(
        self,
        ledger: LedgerThread,
        open_runs: OpenRuns,
        health: Health,
        floor: datetime,
        on_ended: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._open_runs = open_runs
        self._health = health
        self._floor = floor
        self._on_ended = on_ended
        self._wake = asyncio.Event()
        self._anew: set[UUID] = set()

    def wake(self, anew: UUID | None = None) -> None:
        """Look soon: a run has ended.

        Parameters:
            anew: a run that had ended before. For Prefect, the time of its end stays: it is asked for by its id.
        """
        if anew is not None:
            self._anew.add(anew)
        self._wake.set()

    async def run(self) -> None:
        """Read final states, until cancelled.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError: call it again, nothing is lost.
        """
        overlap = LONG_OVERLAP
        while True:
            self._wake.clear()
            await self.look(overlap)
            self._health.up(READING_ENDS)
            # What became visible late is found each minute.
            overlap = OVERLAP if await heard(self._wake, LOOK_AT_ENDS_EVERY) else 3 * OVERLAP
            await asyncio.sleep(REST)

    async def look(self, overlap: timedelta = LONG_OVERLAP) -> None:
        """Read the final states since the last look.

        Parameters:
            overlap: how much further back it reads; with the longest, it also reads which runs ended anew meanwhile.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        newest = await self._ledger.cursor(CURSOR)
        since = self._floor if newest is None else max(self._floor, newest - overlap)
        if newest is not None and overlap == LONG_OVERLAP:
            self._anew |= {change.run async for change in self._open_runs.ended_anew(since)}
        anew = set(self._anew)
        found = await self._open_runs.ended(since, anew)
        runs = [replace(each, ended=self._ledger.by_ledger(each.ended)) for each in found]
        if runs and await self._ledger.call(self._ledger.writer.ended_runs.add, runs, self._ledger.now()):
            self._on_ended()
        if found and (newest is None or newest < found[-1].ended):
            await self._ledger.set_cursor(CURSOR, found[-1].ended)
        self._anew -= anew
