"""Follow flow runs from begin to end: Prefect sends the changes, and is asked for them. Contract 4.7, 8.6.

Prefect may not have sent all of them. The states of the runs that go on are read each minute, and, when an evaluator
starts or Prefect was away, those of the runs that ended meanwhile: one that somebody retried goes on in the ledger too,
until its end is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from assetflow.core.rules.ended_runs import RunChange, RunEnd, RunGoingOn
from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, LedgerError, PrefectRefused, PrefectUnreachable
from assetflow.evaluator.health import Health, Loop, logger
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.runs.launch import Launch
from assetflow.ledger.read.explanations import decision_explanation
from assetflow.ledger.records import DecisionRecord
from assetflow.prefect_io.flow_runs import FlowRuns
from assetflow.prefect_io.logs import EventLog
from assetflow.prefect_io.open_runs import OpenRuns
from assetflow.prefect_io.own_events import decision_made
from assetflow.prefect_io.rest import Json
from assetflow.prefect_io.run_notes import RunNotes

ASK_EVERY = 5.0
ASKED_AT_ONCE = 50
# How many times Prefect is asked for the ends of runs, until it is asked again for all that go on.
ASKED_BETWEEN_LOOKS = 12
# The cursor up to which Prefect has sent all changes of runs.
CURSOR = "runs"
# How much later the end of a run may be visible, and how much the clocks may differ.
OVERLAP = timedelta(minutes=15)


class RunWatch:
    """Tells the ledger which runs go on and which have ended.

    Parameters:
        open_runs: the runs that go on, whoever started them. A target of which one goes on is not asked for (8.6).
        on_ended: called after the end of a run, which may lead to a new decision.
        now: returns the time.
        read_logs: records what Prefect's logs have by now. What a run has updated counts before its end (8.16).
    """

    def __init__(
        self,
        ledger: LedgerThread,
        runs: FlowRuns,
        open_runs: OpenRuns,
        health: Health,
        on_ended: Callable[[], None],
        read_logs: Callable[[], Awaitable[None]],
        now: Callable[[], datetime],
    ) -> None:
        self._ledger = ledger
        self._decisions, self._freshness, self._writer = ledger.reader.decisions, ledger.reader.freshness, ledger.writer
        self._runs = runs
        self._open_runs = open_runs
        self._health = health
        self._on_ended = on_ended
        self._read_logs = read_logs
        self._now = now
        self._asked_last: UUID | None = None
        self._hears = False

    async def run(self) -> None:
        """Ask Prefect, until cancelled, for the runs that have not ended as far as the ledger knows, some at a time.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError: call it again.
        """
        while True:
            # First: only when Prefect has answered both questions, or neither was asked, does it work again.
            await self.look()
            for _ in range(ASKED_BETWEEN_LOOKS):
                for run, end in (await self._runs.ended(await self._next_runs())).items():
                    await self.end(run, end)
                self._health.up("asking for runs")
                await asyncio.sleep(ASK_EVERY)

    async def listen(self, changes: AsyncIterator[RunChange]) -> None:
        """Follow the changes that Prefect sends, after a look at those that it has not sent.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError: call it again.
        """
        await self.look()
        self._hears = True
        try:
            async for change in changes:
                await self.follow(change)
        finally:
            self._hears = False

    async def look(self) -> None:
        """Record which runs go on: those that were retried, and those of what is compared. Prefect may not tell of all.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        began, heard = self._now(), await self._ledger.cursor(CURSOR)
        since = None if self._hears or heard is None else min(heard, began) - OVERLAP
        async for states in self._open_runs.states(since):
            await self._retried(states)
        if since is not None:
            async for change in self._open_runs.ended_anew(since):
                await self.follow(change)
        await self._ledger.set_cursor(CURSOR, began)
        if await self._ledger.call(self._freshness.compares):
            async for run in self._open_runs.all():
                if await self._ledger.call(self._freshness.compares, run.deployment):
                    await self._goes_on(run)

    async def follow(self, change: RunChange) -> None:
        """Record that a run goes on, or has ended.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        if change.retried is not None:
            await self._retried({change.run: change.retried}, change.retried)
        if change.end is not None:
            await self.end(change.run, change.end)
        elif change.deployment is not None and await self._ledger.call(self._freshness.compares, change.deployment):
            await self._note(change)

    async def end(self, run: UUID, end: RunEnd) -> None:
        """Record that a run has ended, after what it has updated.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        if await self._ledger.call(self._decisions.is_compared, run):
            await self._read_logs()
            end = await self._with_start(run, end)
        if await self._ended(run, end):
            self._on_ended()

    async def _note(self, change: RunChange) -> None:
        """Record that a run goes on, and when it started. Prefect tells more of a run that the ledger does not know."""
        if await self._ledger.call(self._freshness.knows_run, change.run):
            if change.began is not None:
                await self._began(change.run, change.began)
        elif (found := await self._open_runs.find(change.run)) is not None:
            await self._goes_on(found)

    async def _with_start(self, run: UUID, end: RunEnd) -> RunEnd:
        """Return the end of a run with its start, unless the ledger has heard of that. Prefect may not have sent it."""
        if end.began is not None or not await self._ledger.call(self._freshness.lacks_start, run):
            return end
        return end._replace(began=await self._open_runs.began(run))

    async def _next_runs(self) -> list[UUID]:
        """Return the runs to ask for next: each in turn, however many go on."""
        runs = await self._running(self._asked_last)
        if not runs and self._asked_last is not None:
            runs = await self._running(None)
        self._asked_last = runs[-1] if len(runs) == ASKED_AT_ONCE else None
        return runs

    # The ledger

    async def _running(self, after: UUID | None) -> list[UUID]:
        """Return runs that go on as far as the ledger knows, in the order of their ids: of decisions, and others."""
        decided = await self._ledger.call(self._decisions.open_runs, ASKED_AT_ONCE, after)
        others = await self._ledger.call(self._freshness.other_runs, ASKED_AT_ONCE, after)
        return sorted([*decided, *others])[:ASKED_AT_ONCE]

    async def _goes_on(self, run: RunGoingOn) -> None:
        """Record that a run goes on whose outputs are compared, whoever started it, and when it began. Contract 8.6."""
        if run.decision is None and not await self._ledger.call(self._freshness.knows_run, run.run):
            await self._ledger.call(self._writer.runs.goes_on, run.moved(self._ledger.by_ledger), self._ledger.now())
        if run.began is not None:
            await self._began(run.run, run.began)

    async def _began(self, run: UUID, at: datetime) -> None:
        """Record when a run started that the ledger knows. Contract 8.6."""
        if await self._ledger.call(self._freshness.lacks_start, run):
            await self._ledger.call(self._writer.runs.began, run, self._ledger.by_ledger(at), self._ledger.now())

    async def _ended(self, run: UUID, end: RunEnd) -> bool:
        """Record that a run has ended. Return False if the ledger does not know it, or its end is known already."""
        now, moved = self._ledger.now(), end._replace(at=self._moved(end.at), began=self._moved(end.began))
        ended = partial(self._writer.decisions.ended, flow_run_id=run, outcome=moved.outcome, late=self._ledger.is_late)
        if (
            await self._ledger.call(ended, moved.state, now, at=moved.at, began=moved.began, state_at=end.at)
            is not None
        ):
            return True
        return await self._ledger.call(self._writer.runs.ended, run, moved, now, end.at) is not None

    async def _retried(self, states: Mapping[UUID, datetime], at: datetime | None = None) -> None:
        """Record which runs go on again that had ended as far as the ledger knows. Contract 4.7.

        Parameters:
            states: the time of the newest state of each run.
            at: when they left their final state, if Prefect tells.
        """
        now, late, left = self._ledger.now(), self._ledger.is_late, self._moved(at)
        await self._ledger.call(self._writer.ended_runs.go_on, states)
        for run in await self._ledger.call(self._decisions.ended, states):
            given = (run, states[run], now)
            if not await self._ledger.call(self._writer.decisions.retried, *given, late=late, at=left):
                await self._ledger.call(self._writer.runs.retried, *given, left)

    def _moved(self, moment: datetime | None) -> datetime | None:
        return None if moment is None else self._ledger.by_ledger(moment)


LOOK_EVERY = 5.0
AT_ONCE = 50


class NoteWriter(Loop):
    """Writes the notes of runs.

    Parameters:
        at_rest: returns when no decision waits to be launched.
    """

    def __init__(
        self, ledger: LedgerThread, board: RunNotes, health: Health, at_rest: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__("notes of runs", health)
        self._ledger = ledger
        self._board = board
        self._at_rest = at_rest

    async def step(self) -> float:
        """Write the missing notes."""
        while await self._write_some():
            pass
        return LOOK_EVERY

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
