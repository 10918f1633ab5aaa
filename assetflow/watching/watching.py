"""Run watchers: a task for each source, with its own backoff; record what it brings, and set aside what cannot be."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar
from uuid import UUID

from assetflow.core.grouping import grouped
from assetflow.core.values.events import Recording
from assetflow.core.values.triggers import MessageQueueTrigger
from assetflow.core.values.watchers import WebhookTrigger
from assetflow.core.values.words import shown
from assetflow.core.watchers.intake import RefusedChange, Watched, WatcherIntake
from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, LedgerError, WatchingFailed
from assetflow.evaluator.health import (
    ENDS_ALL,
    Backoff,
    Doubt,
    Health,
    content_of,
    heard,
    log_set_aside,
    logger,
    reason_of,
)
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger.records import WatcherRecord

SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_BETWEEN_LAGS = 15.0
SECONDS_TO_TELL = 15.0
SECONDS_TO_FINISH = 5.0
# A source that works for that long starts again with the shortest pause.
SECONDS_OF_HEALTH = 30.0

Done = TypeVar("Done")


@dataclass(frozen=True)
class WatchPlan:
    """The watchers of one place, which share a task.

    Attributes:
        key: the same for the same place.
    """

    key: str
    watched: tuple[Watched, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.watched)


class WatchedSource(Protocol):
    """A source that a watcher's loop reads."""

    async def step(self) -> WatcherIntake:
        """Wait for something new, and return what is to be recorded."""
        ...

    async def recorded(self) -> Sequence[UUID]:
        """Continue after the last intake, which is in the ledger. Return the notes that are not needed any more."""
        ...

    async def lag(self) -> int | None:
        """Return how much waits; `None` if the source does not tell."""
        return None


OpenSource = Callable[[WatchPlan, LedgerThread], AbstractAsyncContextManager[WatchedSource]]


def plans_of(records: Iterable[WatcherRecord]) -> dict[str, WatchPlan]:
    """Return what has to be watched, by key. A queue is left alone while one of its watchers is paused."""
    # The server takes webhooks in.
    found = grouped((_key(each), each) for each in records if not isinstance(each.trigger, WebhookTrigger))
    return {
        key: WatchPlan(key, tuple(Watched(each.name, each.trigger, each.assets) for each in together))
        for key, together in found.items()
        if not any(each.paused for each in together)
    }


def _key(record: WatcherRecord) -> str:
    if isinstance(record.trigger, MessageQueueTrigger):
        return f"{record.trigger.kind} {record.trigger.place}"
    # Each watcher of files has a cursor of its own.
    return f"{record.trigger.kind} {record.name}"


class Watching:
    """The watchers of a ledger.

    Parameters:
        open_source: opens what a plan watches.
        ready: called when the watchers are known for the first time.
    """

    def __init__(self, ledger: LedgerThread, open_source: OpenSource, ready: Callable[[], None] = lambda: None) -> None:
        self._ledger = ledger
        self._writer = ledger.writer.watchers
        self._open_source = open_source
        self._ready = ready
        self._running: dict[str, tuple[WatchPlan, asyncio.Task[None]]] = {}
        self._seen: object = None
        self._lags: dict[str, int | None] = {}
        # A watcher may have any name, also that of a part of this process.
        self._health, self._sources = Health(), Health()

    async def run(self) -> None:
        """Run the watchers that the ledger has, until cancelled.

        Raises:
            LeaseLost, LedgerForeign: another process has taken over.
        """
        try:
            while True:
                try:
                    await self._look()
                    self._ready()
                    self._health.up("ledger")
                except ENDS_ALL:
                    raise
                except LedgerError as error:
                    self._health.down("ledger", error)
                self._check_tasks()
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
        finally:
            await self._stop(list(self._running))

    async def _look(self) -> None:
        """Start, stop and restart the watchers that have changed since the last look."""
        latest = await self._ledger.call(self._ledger.reader.watchers.latest_change)
        if latest == self._seen:
            return
        records = await self._ledger.call(self._ledger.reader.watchers.all)
        wanted = plans_of(records)
        changed = [key for key, (plan, _) in self._running.items() if not _same(plan, wanted.get(key))]
        await self._stop(changed)
        for key, plan in wanted.items():
            if key not in self._running:
                self._running[key] = plan, asyncio.create_task(self._watch(plan), name=key)
        self._seen = latest

    async def _stop(self, keys: Sequence[str]) -> None:
        await _cancelled([self._running.pop(key)[1] for key in keys])

    def _check_tasks(self) -> None:
        """Raise the error of a task that ended: another process has taken over."""
        for _, task in self._running.values():
            if task.done():
                task.result()

    async def _watch(self, plan: WatchPlan) -> None:
        """Watch one source, and open it again whenever it fails."""
        backoff, recorder = Backoff(), Recorder(self._intake)
        while True:
            began = asyncio.get_running_loop().time()
            try:
                async with self._open_source(plan, self._ledger) as source:
                    await self._set_state(plan, "watching")
                    logger.info("watching %s: %s", plan.watched[0].trigger.describe(), _names(plan))
                    self._sources.up(_names(plan))
                    await self._read(plan, source, recorder)
            except ENDS_ALL:
                raise
            except Exception as error:
                if asyncio.get_running_loop().time() - began > SECONDS_OF_HEALTH:
                    backoff.reset()
                await self._failed(plan, error)
            await asyncio.sleep(backoff.next())

    async def _read(self, plan: WatchPlan, source: WatchedSource, recorder: Recorder) -> None:
        """Read one source until it fails, or no longer answers how much waits."""
        over = asyncio.Event()
        tasks = [
            asyncio.create_task(each)
            for each in (self._take(plan, source, recorder), self._measure(plan, source, over))
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.set()
            await _cancelled(tasks)
        for task in done:
            task.result()

    async def _take(self, plan: WatchPlan, source: WatchedSource, recorder: Recorder) -> None:
        while True:
            intake = await source.step()
            await _to_its_end(self._record(plan, source, recorder, intake))

    async def _record(self, plan: WatchPlan, source: WatchedSource, recorder: Recorder, intake: WatcherIntake) -> None:
        """Record what was found, and only then tell the source. Contract 10.2."""
        reach("between-message-and-ledger")
        new = await self._write(partial(recorder.record, intake))
        reach("between-ledger-and-acknowledgement")
        if tokens := await source.recorded():
            reach("between-acknowledgement-and-note")
            await self._write(lambda: self._ledger.call(self._writer.acknowledged, tokens))
        if new or intake.refused:
            logger.info("%s: %d updates, %d refused", _names(plan), new, len(intake.refused))

    async def _intake(self, intake: WatcherIntake) -> int:
        done = await self._ledger.call(self._writer.record, intake, self._ledger.now())
        return sum(len(recorded.events) for recorded, _ in done)

    async def _set_state(self, plan: WatchPlan, state: str, error: str = "") -> None:
        await self._ledger.call(self._writer.set_state, plan.names, state, error, self._ledger.now())

    async def _write(self, write: Callable[[], Awaitable[Done]]) -> Done:
        """Write to the ledger, again and again while it is in trouble.

        The source stays open meanwhile: a broker counts each delivery, and SQS moves a message that was delivered too
        often to the dead letters.
        """
        backoff = Backoff()
        while True:
            try:
                return await write()
            except ENDS_ALL:
                raise
            except LedgerError as error:
                self._health.down("ledger", error)
            await asyncio.sleep(backoff.next())

    async def _measure(self, plan: WatchPlan, source: WatchedSource, over: asyncio.Event) -> None:
        """Store how much waits, now and then, whenever that has changed.

        A source that waits for something new may be cut off and not know it. So whatever the question raises ends it.
        """
        while not over.is_set():
            try:
                async with asyncio.timeout(SECONDS_TO_TELL):
                    lag = await source.lag()
            except TimeoutError as error:
                raise WatchingFailed(f"it has not told for {SECONDS_TO_TELL:.0f} s how much waits") from error
            changed = {name: lag for name in plan.names if self._lags.get(name, -1) != lag}
            with suppress(LedgerError):
                await self._ledger.call(self._writer.set_lag, changed)
                self._lags |= changed
            await heard(over, SECONDS_BETWEEN_LAGS)

    async def _failed(self, plan: WatchPlan, error: Exception) -> None:
        reason = shown(error) if isinstance(error, AssetflowError) else f"{type(error).__name__}: {shown(error)}"
        self._sources.down(_names(plan), error)
        with suppress(LedgerError):
            await self._set_state(plan, "failing", reason)


async def _to_its_end(step: Coroutine[Any, Any, None]) -> None:
    """Run a step to its end even if the task is cancelled meanwhile: else the source would deliver again."""
    running = asyncio.create_task(step)
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running}, timeout=SECONDS_TO_FINISH)
        await _cancelled([running])
        raise


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended. A client may swallow a cancellation, so it may need another one."""
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=2 * SECONDS_TO_FINISH)


def _names(plan: WatchPlan) -> str:
    return ", ".join(plan.names)


def _same(running: WatchPlan, wanted: WatchPlan | None) -> bool:
    """Return True if a task need not be restarted. Whether its watchers have begun changes while it runs."""

    def shape(plan: WatchPlan) -> list[Any]:
        return [
            (
                each.name,
                each.trigger,
                [(asset.uri, asset.name, asset.group, dict(asset.extra)) for asset in each.assets],
            )
            for each in plan.watched
        ]

    return wanted is not None and shape(running) == shape(wanted)


_log = logging.getLogger("assetflow.watching")

CANNOT_BE_KEPT = "it is refused, and what was sent and why cannot be kept; the log of `assetflow watcher` has more"


# Records in the ledger what a watcher found, and returns how many updates are new.
RecordIntake = Callable[[WatcherIntake], Awaitable[int]]


class Recorder:
    """Records what one source brings, however often the source is opened again."""

    def __init__(self, write: RecordIntake) -> None:
        self._write = write
        self._doubt = Doubt()

    async def record(self, intake: WatcherIntake) -> int:
        """Record an intake, and return how many updates are new.

        Raises:
            LedgerError: the ledger is in trouble; nothing is set aside.
        """
        try:
            new = await self._write(intake)
        except Exception as error:
            if not self._doubt.is_fault_of_a_value(error):
                self._doubt.note(error)
                raise
            new = await self._record_one_by_one(intake)
        self._doubt.clear()
        return new

    async def _record_one_by_one(self, intake: WatcherIntake) -> int:
        """Record each recording alone, and the updates of one that cannot be recorded each alone.

        What cannot be recorded then is refused. The cursor comes last.
        """
        new, refused = 0, list(intake.refused)
        # The note of a message without an id has to be there before its update is (10.3).
        await self._write(WatcherIntake(intake.source, notes=intake.notes))
        waiting = deque(intake.recordings)
        while waiting:
            recording = waiting.popleft()
            try:
                new += await self._write(WatcherIntake(intake.source, recordings=[recording], makers=intake.makers))
            except Exception as error:
                if not self._doubt.is_fault_of_a_value(error):
                    raise
                if len(recording.events) > 1:
                    waiting.extendleft(Recording(event.id, (event,)) for event in reversed(recording.events))
                    continue
                log_set_aside(recording, error)
                refused.append(_refused(recording, intake, error))
        await self._keep(intake.source, refused)
        return new + await self._write(replace(intake, recordings=[], refused=[], notes=[]))

    async def _keep(self, source: str, refused: Sequence[RefusedChange]) -> None:
        """Keep what is refused. What cannot be kept is kept without its content; if that fails too, the log has it."""
        for each in refused:
            for kept in (each, replace(each, payload=None, reason=CANNOT_BE_KEPT)):
                try:
                    await self._write(WatcherIntake(source, refused=[kept]))
                    break
                except Exception as error:
                    if not self._doubt.is_fault_of_a_value(error):
                        raise
                    _log.error("%s: the refused %s cannot be kept", source, each.id, exc_info=error)


def _refused(recording: Recording, intake: WatcherIntake, error: Exception) -> RefusedChange:
    names = dict.fromkeys(name for event in recording.events for name in intake.makers.get(event.id, ()))
    reason, rule = reason_of(error)
    return RefusedChange(recording.id, content_of(recording), reason, tuple(names), rule)
