"""Queue what the websocket and Prefect's logs bring, and write it to the ledger.

The order in which recordings are accepted is the order of the ledger. A recording leaves the queue when the ledger has
recorded or refused it. Its id is remembered for a while, so that reading the logs again is cheap.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid5

from assetflow.core.graph.lineage import Learned
from assetflow.core.values.events import Recording
from assetflow.core.values.words import shown
from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, InvalidEvent, PrefectRefused, PrefectUnreachable
from assetflow.evaluator.health import (
    ENDS_ALL,
    TROUBLE,
    Backoff,
    Doubt,
    Health,
    content_of,
    heard,
    log_set_aside,
    reason_of,
)
from assetflow.evaluator.incoming.assembly import Assembly, Seen
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.prefect_io.asset_events import is_copy
from assetflow.prefect_io.names import ASSET_UPDATED, MATERIALIZATION_SUCCEEDED
from assetflow.prefect_io.recordings import (
    is_unplaced,
    learned_from_prefect_event,
    part_of_recording,
    read_up_to,
    recording_from_artifact,
    recording_from_prefect_event,
)
from assetflow.prefect_io.rest import Json

logger = logging.getLogger("assetflow.evaluator")

LARGEST_BATCH = 1_000
# While so many wait, the stream adds none: a ledger that is away for hours must not cost all memory.
MOST_WAITING = 20_000
_UNREADABLE = UUID("0d7f4a4e-41e7-5ab1-8c55-6b3c2f1f2a10")
SOURCE = "prefect"


@dataclass(frozen=True)
class Refused:
    """An event from Prefect that breaks a rule of contract 1 or 2; the ledger keeps it. Contract 2.6."""

    id: UUID
    event: Json
    reason: str
    rule: str | None = None


Item = Recording | Refused | Learned
StartsOf = Callable[[Sequence[UUID]], Awaitable[Mapping[UUID, datetime]]]
"""Returns when each of some task runs began, by Prefect's clock, of those that Prefect knows."""


class Inbox:
    """The queue of recordings waiting to be written to the ledger.

    Parameters:
        on_recorded: called after each write, when there may be decisions to launch.
        on_missing: called when parts of a recording are late, so that its artifact has to be read.
        starts_of: asked when the `@materialize` tasks began that name what they have read.
        on_failed_check: called when data that failed a check was written.
    """

    def __init__(
        self,
        ledger: LedgerThread,
        health: Health,
        now: Callable[[], datetime],
        on_recorded: Callable[[], None],
        on_missing: Callable[[], None],
        starts_of: StartsOf,
        assembly: Assembly | None = None,
        on_failed_check: Callable[[], None] = lambda: None,
    ) -> None:
        self._ledger = ledger
        self._health = health
        self._now = now
        self._on_recorded = on_recorded
        self._on_missing = on_missing
        self._starts_of = starts_of
        self._on_failed_check = on_failed_check
        self._assembly = assembly or Assembly()
        self._looked: datetime | None = None
        self._queue: deque[Item] = deque()
        self._arrived = asyncio.Event()
        # The numbers of items that were accepted, and that have left the queue since.
        self._accepted = self._done = 0
        self._some_done = asyncio.Condition()
        self._seen = Seen()
        self._doubt = Doubt()

    def hear(self, event: Json) -> None:
        """Accept an event from Prefect's stream. While too many wait, leave it to the sweeps. It never raises."""
        if len(self._queue) < MOST_WAITING:
            self.take_event(event)

    def take_event(self, event: Json) -> None:
        """Accept an event from Prefect: an update, a part of a recording, or something else. It never raises."""
        number = _id_of(event)
        if number in self._seen and not self._seen.has_other_content(number, event):
            return
        try:
            recording, learned = recording_from_prefect_event(event), learned_from_prefect_event(event)
            part = part_of_recording(event)
            if recording is not None and part is not None and part[1] > 1:
                recording = self._assembly.add(recording, part[1], self._now())
                self._arrived.set()
        except Exception as error:
            self._refuse(number, event, error)
            return
        if learned is not None:
            if recording is None:
                self._seen.add(number)
            self._enqueue(learned)
        if recording is not None:
            self._accept(recording)

    def leave_out(self, event: Json, floor: datetime) -> None:
        """Refuse an update of somebody else because it occurred before the ledger's beginning. It never raises."""
        number = _id_of(event)
        try:
            is_update = event["event"] in (ASSET_UPDATED, MATERIALIZATION_SUCCEEDED) and not is_copy(event)
            if is_update and number not in self._seen and part_of_recording(event) is None:
                raise InvalidEvent(
                    f"it occurred at {event['occurred']}, before this ledger began ({floor:%Y-%m-%d %H:%M} UTC)",
                    fix="Set the producer's clock, or start the evaluator once with --since and a time before it",
                    rule="2.6",
                )
        except AssetflowError as error:
            self._refuse(number, event, error)

    def take_artifact(self, artifact: Json) -> None:
        """Accept a recording that a task wrote as an artifact. It never raises."""
        number = _id_of(artifact)
        if number in self._seen:
            return
        try:
            recording = recording_from_artifact(artifact)
        except Exception as error:
            self._refuse(number, artifact, error)
            return
        self._assembly.drop(recording.id)
        self._accept(recording, number)

    def take(self, recording: Recording) -> None:
        """Accept a complete recording."""
        self._assembly.drop(recording.id)
        self._accept(recording)

    def looked(self, began: datetime) -> None:
        """Note that a sweep that began at this time has handed over all artifacts that existed then."""
        self._looked = began if self._looked is None else max(self._looked, began)

    async def settled(self) -> None:
        """Return when everything that was accepted so far is in the ledger, also if more is accepted all the time."""
        accepted = self._accepted
        async with self._some_done:
            await self._some_done.wait_for(lambda: self._done >= accepted)

    @property
    def is_idle(self) -> bool:
        """True if nothing is queued, and no recording lacks parts."""
        return not self._queue and not self._assembly

    async def run(self) -> None:
        """Write what is queued, until cancelled. An error of the ledger does not end it: it tries again.

        Raises:
            LeaseLost, LedgerForeign: another evaluator has taken over.
        """
        backoff = Backoff()
        while True:
            await self._something()
            batch = [self._queue[place] for place in range(min(len(self._queue), LARGEST_BATCH))]
            try:
                await self._write(batch)
            except ENDS_ALL:
                raise
            except TROUBLE as error:
                # The ledger is in trouble, not the recordings: they stay at the head of the queue.
                self._doubt.note(error)
                self._health.down("ledger", error)
                await asyncio.sleep(backoff.next())
                continue
            backoff.reset()
            self._doubt.clear()
            self._health.up("ledger")
            for _ in batch:
                self._queue.popleft()
            async with self._some_done:
                self._done += len(batch)
                self._some_done.notify_all()
            self._on_recorded()

    async def _something(self) -> None:
        """Return when there is something to write. Check recordings with missing parts meanwhile."""
        while not self._queue:
            self._arrived.clear()
            if not await heard(self._arrived, 0.25 if len(self._assembly) else None):
                self._check_parts()

    def _check_parts(self) -> None:
        now = self._now()
        for recording in self._assembly.give_up(now, self._looked):
            logger.warning("recording %s: parts of it never came and it has no artifact; taken as it is", recording.id)
            self._accept(recording)
        if self._assembly.has_overdue(now):
            self._on_missing()

    async def _write(self, batch: list[Item]) -> None:
        recordings = [item for item in batch if isinstance(item, Recording)]
        reach("between-event-and-ledger")
        if recordings:
            try:
                await self._record(recordings)
            except Exception as error:
                if not self._doubt.is_fault_of_a_value(error):
                    raise
                await self._record_one_by_one(recordings)
        for item in batch:
            if isinstance(item, Refused):
                await self._keep(item)
            elif isinstance(item, Learned):
                await self._ledger.call(self._ledger.writer.lineage.learn, item, self._ledger.now())
        reach("between-ledger-and-launch")

    async def _record(self, recordings: list[Recording]) -> None:
        recordings = [self._by_ledger(each) for each in await self._placed(recordings)]
        done = await self._ledger.call(self._ledger.writer.events.record, recordings, self._ledger.now())
        for recorded, _ in done:
            for uri in recorded.new_assets:
                logger.info("new asset %s", uri)
            for warning in recorded.warnings:
                logger.warning(warning)
            if recorded.failed_checks:
                self._on_failed_check()
        if events := sum(len(recorded.events) for recorded, _ in done):
            about = {"recordings": [str(recording.id) for recording in recordings]}
            decisions = sum(len(made) for _, made in done)
            logger.info("updates recorded: %d, decisions made: %d", events, decisions, extra=about)

    async def _placed(self, recordings: list[Recording]) -> list[Recording]:
        """Return recordings whose updates have read what was recorded before their task runs began. Contract 2.9."""
        unplaced = [event for each in recordings for event in each.events if is_unplaced(event)]
        if not unplaced:
            return recordings
        starts = await self._starts({event.origin.task_run.id for event in unplaced if event.origin.task_run})
        return [replace(each, events=tuple(read_up_to(event, starts) for event in each.events)) for each in recordings]

    async def _starts(self, runs: Collection[UUID]) -> Mapping[UUID, datetime]:
        """Return when the task runs began that say what they have read, but not up to when."""
        if not runs:
            return {}
        try:
            found = await self._starts_of([*runs])
        except (PrefectUnreachable, PrefectRefused) as error:
            logger.info("what %d task runs have read is not known: %s", len(runs), shown(error))
            return {}
        return {run: self._ledger.by_ledger(began) for run, began in found.items()}

    def _by_ledger(self, recording: Recording) -> Recording:
        if recording.durable is None:
            return recording
        return replace(recording, durable=self._ledger.by_ledger(recording.durable))

    async def _record_one_by_one(self, recordings: list[Recording]) -> None:
        """Record each of them alone. Those that cannot be recorded are refused."""
        for recording in recordings:
            try:
                await self._record([recording])
            except Exception as error:
                if not self._doubt.is_fault_of_a_value(error):
                    raise
                await self._keep(_set_aside(recording, error))

    async def _keep(self, refused: Refused) -> None:
        """Store what is refused, without its content if the content cannot be written."""
        for kept in (refused, replace(refused, event={"id": str(refused.id)})):
            try:
                given = (kept.event, kept.reason, kept.rule, SOURCE, kept.id)
                await self._ledger.call(self._ledger.writer.events.refuse, *given, self._ledger.now())
            except Exception as error:
                if not self._doubt.is_fault_of_a_value(error):
                    raise
                logger.warning("%s is refused (%s) and cannot be kept: %s", refused.id, refused.reason, error)
            else:
                return

    def _accept(self, recording: Recording, *also: UUID) -> None:
        # An event with a known id and other content is passed to the ledger, which logs a warning.
        new = [event for event in recording.events if not self._seen.has(event)]
        for number in also:
            self._seen.add(number)
        for event in recording.events:
            self._seen.add_event(event)
        if new or not recording.events:
            self._enqueue(recording)

    def _refuse(self, number: UUID, data: Json, error: Exception) -> None:
        if not isinstance(error, AssetflowError):
            logger.exception("%s cannot be read; it is kept as refused", number)
        else:
            logger.warning("refused %s: %s", number, shown(error))
        self._seen.add(number)
        self._enqueue(_refused(number, data, error))

    def _enqueue(self, item: Item) -> None:
        self._queue.append(item)
        self._accepted += 1
        self._arrived.set()


def _id_of(data: Json) -> UUID:
    """Return the id that Prefect gave, else an id derived from the content."""
    try:
        return UUID(str(data["id"]))
    except (KeyError, ValueError):
        return uuid5(_UNREADABLE, repr(data))


def _set_aside(recording: Recording, error: Exception) -> Refused:
    """Return the recording as refused, with its events."""
    log_set_aside(recording, error)
    return _refused(recording.id, content_of(recording), error)


def _refused(number: UUID, data: Json, error: Exception) -> Refused:
    return Refused(number, data, *reason_of(error))
