"""What comes in, from the websocket and from Prefect's logs, in one line to the ledger.

The order in which things are accepted here is the order of the ledger. An event leaves the line only when the ledger
has it, recorded or refused; what the ledger has is remembered for a while, so that reading the logs again is cheap.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from datetime import datetime
from uuid import UUID, uuid5

from assetflow.core.events import Recording
from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, LedgerError
from assetflow.evaluator.assembly import Assembly
from assetflow.evaluator.health import ENDS_ALL, Backoff, Health, heard
from assetflow.evaluator.ports import EvaluatorLedger, Refused
from assetflow.prefect_io.recordings import part_of_recording, recording_from_artifact, recording_from_prefect_event
from assetflow.prefect_io.rest import Json

logger = logging.getLogger("assetflow.evaluator")

LARGEST_BATCH = 1_000
REMEMBERED = 50_000
_UNREADABLE = UUID("0d7f4a4e-41e7-5ab1-8c55-6b3c2f1f2a10")


class Intake:
    """The line to the ledger.

    Parameters:
        on_recorded: called after each write, when there may be decisions to launch.
        on_missing: called when parts of a recording are late: its artifact has to be read.
    """

    def __init__(
        self,
        ledger: EvaluatorLedger,
        health: Health,
        now: Callable[[], datetime],
        on_recorded: Callable[[], None],
        on_missing: Callable[[], None],
        assembly: Assembly | None = None,
    ) -> None:
        self._ledger = ledger
        self._health = health
        self._now = now
        self._on_recorded = on_recorded
        self._on_missing = on_missing
        self._assembly = assembly or Assembly()
        self._line: deque[Recording | Refused] = deque()
        self._arrived = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._known: OrderedDict[UUID, None] = OrderedDict()

    def hear(self, event: Json) -> None:
        """An event from Prefect: an update, a part of one, or nothing for us. It never raises."""
        number = _id_of(event)
        if number in self._known:
            return
        try:
            recording = recording_from_prefect_event(event)
            part = part_of_recording(event)
            if recording is not None and part is not None and part[1] > 1:
                recording = self._assembly.add(*part, recording.events[0], self._now())
                self._arrived.set()
        except Exception as error:
            self._refuse(number, event, error)
            return
        if recording is not None:
            self._accept(recording)

    def take_artifact(self, artifact: Json) -> None:
        """A recording that a task left as an artifact. It never raises."""
        number = _id_of(artifact)
        if number in self._known:
            return
        try:
            recording = recording_from_artifact(artifact)
        except Exception as error:
            self._refuse(number, artifact, error)
            return
        self._assembly.drop(recording.id)
        self._accept(recording, number)

    def take(self, recording: Recording) -> None:
        """A recording that is whole."""
        self._assembly.drop(recording.id)
        self._accept(recording)

    async def settled(self) -> None:
        """Return when everything that was accepted so far is in the ledger."""
        await self._empty.wait()

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits here, parts of recordings neither."""
        return not self._line and not self._assembly

    async def run(self) -> None:
        """Write what waits, for ever."""
        backoff = Backoff()
        while True:
            await self._something()
            batch = [self._line[place] for place in range(min(len(self._line), LARGEST_BATCH))]
            try:
                await self._write(batch)
            except ENDS_ALL:
                raise
            except (LedgerError, OSError) as error:
                # The ledger's trouble, not the events': they stay at the head of the line.
                self._health.down("ledger", error)
                await asyncio.sleep(backoff.next())
                continue
            backoff.reset()
            self._health.up("ledger")
            for _ in batch:
                self._line.popleft()
            if not self._line:
                self._empty.set()
            self._on_recorded()

    async def _something(self) -> None:
        """Wait until there is something to write; see to recordings with missing parts meanwhile."""
        while not self._line:
            self._arrived.clear()
            if not await heard(self._arrived, 0.25 if len(self._assembly) else None):
                self._look_after_parts()

    def _look_after_parts(self) -> None:
        now = self._now()
        for recording in self._assembly.give_up(now):
            logger.warning("recording %s: parts of it never came and it has no artifact; taken as it is", recording.id)
            self._accept(recording)
        if self._assembly.has_overdue(now):
            self._on_missing()

    async def _write(self, batch: list[Recording | Refused]) -> None:
        recordings = [item for item in batch if isinstance(item, Recording)]
        reach("between-event-and-ledger")
        if recordings:
            try:
                await self._record(recordings)
            except (LedgerError, OSError):
                raise
            except Exception:
                await self._record_one_by_one(recordings)
        for item in batch:
            if isinstance(item, Refused):
                await self._ledger.refuse(item)
        reach("between-ledger-and-launch")

    async def _record(self, recordings: list[Recording]) -> None:
        written = await self._ledger.record(recordings)
        for uri in written.new_assets:
            logger.info("new asset %s", uri)
        for warning in written.warnings:
            logger.warning(warning)
        if written.events:
            about = {"recordings": [str(recording.id) for recording in recordings]}
            logger.info("updates recorded: %d, decisions made: %d", written.events, written.decisions, extra=about)

    async def _record_one_by_one(self, recordings: list[Recording]) -> None:
        """One of them cannot be recorded: it is set aside as refused, the others go on."""
        for recording in recordings:
            try:
                await self._record([recording])
            except (LedgerError, OSError):
                raise
            except Exception as error:
                logger.exception("recording %s cannot be recorded; it is kept as refused", recording.id)
                data: Json = {"id": str(recording.id), "events": [str(event.id) for event in recording.events]}
                await self._ledger.refuse(_refused(recording.id, data, error))

    def _accept(self, recording: Recording, *also: UUID) -> None:
        new = [event for event in recording.events if event.id not in self._known]
        self._remember((*also, *(event.id for event in recording.events)))
        if new or not recording.events:
            self._enqueue(recording)

    def _refuse(self, number: UUID, data: Json, error: Exception) -> None:
        if not isinstance(error, AssetflowError):
            logger.exception("%s cannot be read; it is kept as refused", number)
        else:
            logger.warning("refused %s: %s", number, error)
        self._remember((number,))
        self._enqueue(_refused(number, data, error))

    def _enqueue(self, item: Recording | Refused) -> None:
        self._line.append(item)
        self._empty.clear()
        self._arrived.set()

    def _remember(self, numbers: Iterable[UUID]) -> None:
        # What is in the line counts as known: it leaves the line for the ledger only, and with it memory and process.
        for number in numbers:
            self._known[number] = None
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _id_of(data: Json) -> UUID:
    """The id that Prefect gave; something without a readable one gets an id of its content."""
    try:
        return UUID(str(data["id"]))
    except (KeyError, ValueError):
        return uuid5(_UNREADABLE, repr(data))


def _refused(number: UUID, data: Json, error: Exception) -> Refused:
    if isinstance(error, AssetflowError):
        return Refused(number, data, str(error), error.rule)
    return Refused(number, data, f"it cannot be read: {error!r}")
