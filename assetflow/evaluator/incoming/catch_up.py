"""Read Prefect's logs for updates that the websocket did not bring, with an overlap so that none is missed.

There are three sweeps: a short one every few seconds, a wide one every minute (the clocks of producers differ, and
Prefect stores events late), and a full one of seven days after the start. Reading an event again costs little (see
`inbox`). `late_events` finds events that Prefect stores even later, by counting.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from logging import Logger

from assetflow.evaluator.health import Health, Loop, logger
from assetflow.evaluator.incoming.inbox import Inbox
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.prefect_io.asset_events import TEACHING
from assetflow.prefect_io.logs import ArtifactLog, EventLog
from assetflow.prefect_io.names import ASSET_UPDATED
from assetflow.prefect_io.recordings import created

MINUTES = 15
SPAN = timedelta(minutes=MINUTES)
DAY = timedelta(days=1)
# The wide sweep reads younger events every minute.
YOUNG = timedelta(minutes=5)
# The largest share of the time in which Prefect counts.
SHARE = 0.02

Span = tuple[datetime, datetime]


class LateEvents:
    """The spans of Prefect's event log that have grown since they were read.

    Parameters:
        clock: returns seconds, to measure how long Prefect takes to count.
    """

    def __init__(self, events: EventLog, names: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._names = names
        self._clock = clock
        self._days: dict[Span, int] = {}
        self._spans: dict[datetime, int] = {}
        self._seen: tuple[dict[Span, int], dict[datetime, int]] = ({}, {})
        self._took = 0.0

    async def look(self, since: datetime, now: datetime) -> Sequence[Span]:
        """Return the spans that hold more events than when they were read. Call `mark_read` when they are read again.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        started = self._clock()
        first = _start_of(SPAN, since)
        days: dict[Span, int] = {}
        spans = {start: number for start, number in self._spans.items() if start >= first}
        for day in _days(first, _start_of(SPAN, now - YOUNG)):
            days[day] = await self._events.number(*day, self._names)
            if days[day] != self._days.get(day):
                spans |= await self._events.counted(*day, self._names, MINUTES)
        self._seen = days, spans
        self._took = self._clock() - started
        grown = (start for start, number in spans.items() if number > self._spans.get(start, 0))
        return [(start, start + SPAN) for start in sorted(grown)]

    def mark_read(self) -> None:
        """Note that everything that the last look found is read."""
        self._days, self._spans = self._seen

    def pause(self, least: float) -> float:
        """Return the seconds until the next look: at least `least`, more if Prefect counts slowly."""
        return max(least, self._took / SHARE)


def _days(first: datetime, end: datetime) -> Iterator[Span]:
    """Yield the days from `first` to `end`; the first and the last one may be parts of days."""
    while first < end:
        following = min(end, _start_of(DAY, first) + DAY)
        yield first, following
        first = following


def _start_of(span: timedelta, moment: datetime) -> datetime:
    moment = moment.astimezone(UTC)
    return moment - (moment - datetime.min.replace(tzinfo=UTC)) % span


LOG_EVERY = 10.0

# The time of an entry, and the function that hands it over to the inbox.
Entry = tuple[datetime, Callable[[], None]]


async def merge(*logs: AsyncIterator[Entry]) -> AsyncGenerator[Entry]:
    """Yield the entries of all logs, oldest first, without reading ahead. Each log is in the order of time itself."""
    waiting: list[tuple[Entry, AsyncIterator[Entry]]] = []
    for log in logs:
        await _read_next(waiting, log)
    while waiting:
        first = min(waiting, key=lambda each: each[0][0])
        waiting.remove(first)
        entry, log = first
        yield entry
        await _read_next(waiting, log)


async def _read_next(waiting: list[tuple[Entry, AsyncIterator[Entry]]], log: AsyncIterator[Entry]) -> None:
    async for entry in log:
        waiting.append((entry, log))
        return


@dataclass
class Progress:
    """The number of entries that were read, and the time of the last one."""

    read: int = 0
    upto: datetime | None = None

    def advance(self, moment: datetime) -> None:
        """Count one more entry, of this time."""
        self.read += 1
        self.upto = moment


@asynccontextmanager
async def logged_progress(logger: Logger, every: float = LOG_EVERY) -> AsyncGenerator[Progress]:
    """Log the progress of a reading every few seconds; a reading that ends sooner is not logged."""
    progress = Progress()
    logging = asyncio.create_task(_log(logger, progress, every))
    try:
        yield progress
    finally:
        logging.cancel()


async def _log(logger: Logger, progress: Progress, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        upto = "" if progress.upto is None else f", up to {progress.upto:%Y-%m-%d %H:%M:%S} UTC"
        logger.info("reading Prefect's logs: entries read so far: %d%s", progress.read, upto)


UPDATES = (ASSET_UPDATED, *TEACHING)
OLDER = "reading Prefect's older events"
AHEAD = timedelta(days=1)
SLICE = 1_000


@dataclass(frozen=True)
class Sweeps:
    """How often Prefect's logs are read, and how far back.

    Attributes:
        every: the time between two short sweeps.
        overlap: how far a short sweep reads back behind the last one.
        wide_every, wide_overlap: the same for the wide sweep.
        full_overlap: how far back the full sweep after the start reads; Prefect keeps events for seven days.
        save_every: how far the cursors may advance before they are saved in the ledger.
        late_every: the time between two looks for events that were stored late.
    """

    every: timedelta = timedelta(seconds=3)
    overlap: timedelta = timedelta(seconds=30)
    wide_every: timedelta = timedelta(seconds=60)
    wide_overlap: timedelta = timedelta(minutes=15)
    full_overlap: timedelta = timedelta(days=7)
    save_every: timedelta = timedelta(seconds=10)
    late_every: timedelta = timedelta(seconds=60)


class CatchUp(Loop):
    """The sweeps over Prefect's artifacts and its event log.

    Parameters:
        floor: the beginning of the ledger; older updates are not recorded.
    """

    def __init__(
        self,
        artifacts: ArtifactLog,
        events: EventLog,
        inbox: Inbox,
        ledger: LedgerThread,
        health: Health,
        now: Callable[[], datetime],
        floor: datetime,
        sweeps: Sweeps | None = None,
    ) -> None:
        super().__init__("reading Prefect's logs", health)
        self._artifacts = artifacts
        self._events = events
        self._inbox = inbox
        self._ledger = ledger
        self._now = now
        self._floor = floor
        self._sweeps = sweeps or Sweeps()
        self._late = LateEvents(events, UPDATES)
        self._widened = now()
        self._reading_on = asyncio.Lock()
        self._artifacts_read = floor
        self._events_read = floor
        self._saved = floor
        self._full_sweep_done = False
        # When the last sweep began that has read to its end: everything that was stored until then is recorded.
        self.read_until: datetime | None = None

    async def start(self) -> None:
        """Make the first sweep, from where the last evaluator stopped.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        self._artifacts_read = await self._ledger.cursor("artifacts") or self._floor
        self._events_read = self._saved = await self._ledger.cursor("events") or self._floor
        await self.sweep(self._sweeps.overlap)

    async def full_sweep(self) -> None:
        """Sweep once over everything that Prefect still has, back to the beginning of the ledger.

        What occurred before it and was posted after it, perhaps while no evaluator ran, is refused.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        await self.sweep(self._sweeps.full_overlap)
        since, _ = self._late_stretch()
        if since < self._floor:
            await self._take(self._events_between(since, self._floor))

    async def read_on(self) -> None:
        """Record what Prefect's logs have by now. Of several calls at a time, one sweep may be enough.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        asked = self._now()
        async with self._reading_on:
            if self.read_until is None or self.read_until < asked:
                await self.sweep(self._sweeps.overlap)

    async def step(self) -> float:
        """Sweep, each minute further back."""
        now = self._now()
        # If the clock was set back, the time since the last wide sweep is unknown.
        is_wide = now < self._widened or now - self._widened >= self._sweeps.wide_every
        await self.sweep(self._sweeps.wide_overlap if is_wide else self._sweeps.overlap)
        if is_wide:
            self._widened = now
        return self._sweeps.every.total_seconds()

    async def run_older(self) -> None:
        """Do the full sweep once, and then read the events that Prefect stores late, until cancelled.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError: call it again.
        """
        if not self._full_sweep_done:
            # Count first, so that events that are stored during the full sweep are read again.
            await self._late.look(*self._late_stretch())
            await self.full_sweep()
            self._late.mark_read()
            self._full_sweep_done = True
        while True:
            self._health.up(OLDER)
            await asyncio.sleep(self._late.pause(self._sweeps.late_every.total_seconds()))
            await self.late_events()

    async def late_events(self) -> None:
        """Record the events that were stored since the last look, with times that were read long before.

        One that occurred before the ledger was created is refused.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        for since, until in await self._late.look(*self._late_stretch()):
            await self._take(self._events_between(since, until))
        self._late.mark_read()

    async def sweep(self, overlap: timedelta) -> None:
        """Read both logs, from the last sweep minus `overlap`, and hand their entries to the inbox, oldest first.

        Artifacts are ordered by their creation, events by the time when they occurred. The next slice is read when the
        last one is in the ledger and the cursors are behind it. So a long backlog takes little memory, and the sweep
        after one that was killed goes on from there.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        started = self._now()
        self._move_out_of_future(started)
        newest = [self._artifacts_read]
        entries = merge(
            self._artifacts_since(self._back(self._artifacts_read, overlap), newest),
            self._events_between(self._back(self._events_read, overlap), started + AHEAD),
        )
        await self._take(entries, partial(self._reached, until=started))
        self._inbox.looked(started)
        # The full sweep runs beside short ones, which may have read further.
        self.read_until = max(started, self.read_until or started)
        self._ledger.logs_read(self.read_until)
        self._artifacts_read = max(self._artifacts_read, *newest)
        self._events_read = max(self._events_read, started)
        await self._save()

    async def _take(
        self, entries: AsyncIterator[Entry], reached: Callable[[datetime], Awaitable[None]] | None = None
    ) -> None:
        """Hand the entries to the inbox, and return when all of them are in the ledger.

        Parameters:
            reached: called after each slice with the time of its last entry.
        """
        async with logged_progress(logger) as progress:
            async for moment, hand_over in entries:
                hand_over()
                progress.advance(moment)
                if progress.read % SLICE == 0:
                    await self._inbox.settled()
                    if reached is not None:
                        await reached(moment)
            await self._inbox.settled()

    async def _artifacts_since(self, since: datetime, newest: list[datetime]) -> AsyncIterator[Entry]:
        async for artifact in self._artifacts.updates_since(since):
            newest.append(max(newest.pop(), created(artifact)))
            yield created(artifact), partial(self._inbox.take_artifact, artifact)

    async def _events_between(self, since: datetime, until: datetime) -> AsyncIterator[Entry]:
        async for event in self._events.between(since, until, UPDATES):
            occurred = datetime.fromisoformat(event["occurred"])
            if occurred >= self._floor:
                yield occurred, partial(self._inbox.take_event, event)
            elif datetime.fromisoformat(event["received"]) >= self._floor:
                yield occurred, partial(self._inbox.leave_out, event, self._floor)

    async def _reached(self, moment: datetime, until: datetime) -> None:
        self._artifacts_read = max(self._artifacts_read, min(moment, until))
        self._events_read = max(self._events_read, min(moment, until))
        await self._save()

    def _move_out_of_future(self, now: datetime) -> None:
        """Set what is in the future back to now: a clock that was ahead left it.

        It would hide updates, and the clock would decide at once what has to wait.
        """
        if self.read_until is not None:
            self.read_until = min(self.read_until, now)
        self._floor = min(self._floor, now)
        self._artifacts_read = min(self._artifacts_read, now)
        self._events_read = min(self._events_read, now)

    def _late_stretch(self) -> tuple[datetime, datetime]:
        now = self._now()
        return now - self._sweeps.full_overlap, now

    def _back(self, moment: datetime, overlap: timedelta) -> datetime:
        return max(self._floor, moment - overlap)

    async def _save(self) -> None:
        if abs(self._events_read - self._saved) >= self._sweeps.save_every:
            await self._ledger.set_cursor("artifacts", self._artifacts_read)
            await self._ledger.set_cursor("events", self._events_read)
            self._saved = self._events_read
