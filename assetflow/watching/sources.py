"""Open what watchers watch, with the library of its kind or by a class of the user in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from assetflow.core.values.addresses import (
    KAFKA,
    KNOWN,
    RABBITMQ,
    REDIS,
    SQS,
    Address,
    PrefectBlock,
    check_scheme,
    with_variables,
)
from assetflow.core.values.table_triggers import DeltaTableTrigger, IcebergTableTrigger, SQLTrigger
from assetflow.core.values.triggers import FileTrigger, MessageQueueTrigger, check_stays, is_of_queue, other_kinds
from assetflow.core.values.watchers import ClassTrigger, UnreadableTrigger
from assetflow.core.watchers.intake import Watched, WatcherIntake
from assetflow.core.watchers.table_changes import CURSOR, Change, Found, intake_of
from assetflow.errors import InvalidWatcher, LeaseLost, LedgerForeign, WatchingFailed
from assetflow.evaluator.health import Health, keep_going, logger, one_reason, run_until
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger.lease import LEASE_SECONDS, Role
from assetflow.operations.deciding_ledger import ASK_EVERY, Decider
from assetflow.prefect_io.connection import read_connection
from assetflow.prefect_io.rest import deciding_ledger, prefect_api, read_url_block
from assetflow.watching import class_process
from assetflow.watching.kinds import MessageSource, OpenQueue
from assetflow.watching.kinds.files import open_files
from assetflow.watching.kinds.kafka import open_kafka
from assetflow.watching.kinds.rabbitmq import open_rabbitmq
from assetflow.watching.kinds.redis import open_redis
from assetflow.watching.kinds.sqs import open_sqs
from assetflow.watching.kinds.tables import DeltaLog, IcebergTable, SQLQuery
from assetflow.watching.looks import FileSource, Listener, Looks, Polled, PolledSource
from assetflow.watching.watching import WatchedSource, Watching, WatchPlan

SECONDS_TO_END = 1.0


class ClassSource(WatchedSource):
    """The changes that the class of a watcher yields."""

    def __init__(self, process: Process, watched: Watched, cursor: object, now: Callable[[], datetime]) -> None:
        self._process = process
        self._watched = watched
        self._trigger = cast(ClassTrigger, watched.trigger)
        self._cursor = cursor
        self._now = now

    async def begin(self) -> None:
        """Tell the process which class to run, and where it begins."""
        options = {
            name: with_variables(value, os.environ) if isinstance(value, str) else value
            for name, value in self._trigger.options.items()
        }
        await self._say({"path": self._trigger.path, "options": options, "cursor": self._cursor})

    async def step(self) -> WatcherIntake:
        """Return what is to be recorded of the next change."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        said: dict[str, Any] = json.loads(line) if line else {"error": "its process has ended"}
        if "error" in said:
            raise WatchingFailed(str(said["error"]), where=self._trigger.describe())
        change = _change(said["change"])
        self._cursor = self._cursor if change.cursor is None else change.cursor
        source, label = f"class {self._trigger.place}", self._trigger.describe()
        return intake_of(Found((change,), self._cursor), self._watched, source, label, self._now())

    async def recorded(self) -> Sequence[UUID]:
        """Let the class continue."""
        # If the process has ended, the next step says so.
        with suppress(ConnectionError):
            await self._say(None)
        return ()

    async def _say(self, order: dict[str, object] | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n" if order is None else json.dumps(order).encode() + b"\n")
        await self._process.stdin.drain()


@asynccontextmanager
async def class_source(
    watched: Watched, ledger: LedgerThread, now: Callable[[], datetime]
) -> AsyncGenerator[ClassSource]:
    """Start the process of a class, and end it with the block."""
    cursor = (await ledger.call(ledger.reader.watchers.items, watched.name)).get(CURSOR)
    command = (sys.executable, "-m", class_process.__name__)
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, limit=class_process.MOST_BYTES, start_new_session=True
    )
    try:
        source = ClassSource(process, watched, cursor, now)
        await source.begin()
        yield source
    finally:
        await _end(process)


async def _end(process: Process) -> None:
    """End a process and those that the class has begun: at first by the end of its input."""
    assert process.stdin is not None
    process.stdin.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(SECONDS_TO_END):
            await process.wait()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _change(data: dict[str, Any]) -> Change:
    occurred = data.pop("occurred")
    return Change(**data, occurred=datetime.fromisoformat(occurred) if occurred else None)


ReadBlock = Callable[[str], Awaitable[str]]

_QUEUES: Mapping[str, OpenQueue] = {
    **dict.fromkeys(RABBITMQ.schemes, open_rabbitmq),
    **dict.fromkeys(REDIS.schemes, open_redis),
    **dict.fromkeys(SQS.schemes, open_sqs),
    **dict.fromkeys(KAFKA.schemes, open_kafka),
}


class Sources:
    """Opens sources.

    Parameters:
        read_block: returns the URL that a block of Prefect holds.
        now: returns the current time.
    """

    def __init__(self, read_block: ReadBlock, now: Callable[[], datetime]) -> None:
        self._read_block = read_block
        self._now = now
        # A look that does not come back outlives what has been opened for it.
        self._looks: dict[tuple[str, str], Looks] = defaultdict(Looks)

    @asynccontextmanager
    async def open(self, plan: WatchPlan, ledger: LedgerThread) -> AsyncGenerator[WatchedSource]:
        """Open the source of a plan.

        Raises:
            WatchingFailed: it cannot be opened now.
            InvalidWatcher: its address cannot be used.
        """
        trigger = plan.watched[0].trigger
        looks = self._looks_of(plan)
        if isinstance(trigger, MessageQueueTrigger):
            url = await self._url(trigger.url)
            opens = _opens(check_scheme(url, is_of_queue, known=KNOWN))
            # Watchers of one queue share its messages.
            trigger = replace(
                trigger, batch=min(cast(MessageQueueTrigger, each.trigger).batch for each in plan.watched)
            )
            async with opens(trigger, url) as queue:
                notes = await ledger.call(ledger.reader.watchers.notes, queue.source)
                yield MessageSource(queue, plan.watched, notes, self._now)
        elif isinstance(trigger, FileTrigger):
            path = with_variables(trigger.path, os.environ)
            check_stays(path)
            # The watcher may have begun since it was planned.
            watched = replace(
                plan.watched[0], begun=await ledger.call(ledger.reader.watchers.begun, plan.watched[0].name)
            )
            known = await ledger.call(ledger.reader.watchers.items, watched.name)
            files = await looks.take(partial(open_files, trigger, path))
            async with aclosing(Listener()) as listener:
                source = FileSource(files, looks, watched, known, self._now, listener)
                await source.first_look()
                yield source
        elif isinstance(trigger, DeltaTableTrigger):
            table = await looks.take(partial(DeltaLog, trigger, with_variables(trigger.uri, os.environ)))
            yield await self._polled(table, plan, ledger)
        elif isinstance(trigger, IcebergTableTrigger):
            catalog = await looks.take(partial(IcebergTable, trigger))
            yield await self._polled(catalog, plan, ledger)
        elif isinstance(trigger, SQLTrigger):
            query = SQLQuery(trigger, await self._url(trigger.url))
            yield await self._polled(query, plan, ledger)
        elif isinstance(trigger, ClassTrigger):
            async with class_source(plan.watched[0], ledger, self._now) as source:
                yield source
        elif isinstance(trigger, UnreadableTrigger):
            raise trigger.error
        else:
            raise InvalidWatcher(f"a trigger of the kind {trigger.kind!r} cannot be watched", fix="Update assetflow")

    def _looks_of(self, plan: WatchPlan) -> Looks:
        return self._looks[plan.key, plan.watched[0].trigger.place]

    async def _polled(self, polled: Polled, plan: WatchPlan, ledger: LedgerThread) -> PolledSource:
        (watched,) = plan.watched
        cursor = (await ledger.call(ledger.reader.watchers.items, watched.name)).get(CURSOR)
        source = PolledSource(polled, self._looks_of(plan), watched, cursor, self._now)
        await source.first_look()
        return source

    async def _url(self, address: Address) -> str:
        if isinstance(address, PrefectBlock):
            return await self._read_block(address.name)
        return with_variables(address, os.environ)


def _opens(scheme: str) -> OpenQueue:
    """Return what opens the queues of a scheme.

    Raises:
        WatchingFailed: the package that brings it cannot be imported.
    """
    if scheme in _QUEUES:
        return _QUEUES[scheme]
    try:
        return cast(OpenQueue, other_kinds()[scheme].load())
    except (ImportError, AttributeError) as error:
        raise WatchingFailed(
            f"{other_kinds()[scheme].value}, which opens {scheme}://, cannot be imported: {error}",
            fix="Install its package again in the environment of `assetflow watcher`",
        ) from error


async def watch(
    *, place: str | Path | None = None, stop: asyncio.Event | None = None, ready: Callable[[], None] = lambda: None
) -> None:
    """Run the watchers until `stop` is set. On Postgres it stands by while another process runs them.

    Parameters:
        place: the ledger's file or URL; `None` for the one in the settings.
        stop: ends it; `None` to run for ever.
        ready: called when the watchers are known.

    Raises:
        EvaluatorRunning: another process runs the watchers of this ledger, and this one cannot stand by.
        LedgerForeign: this Prefect belongs to another ledger.
        LedgerError: the ledger cannot be opened.
    """
    await run_until(stop, _work(place, ready))


async def _work(place: str | Path | None, ready: Callable[[], None]) -> None:
    while True:
        try:
            async with LedgerThread(place, stand_by=True, role=Role.WATCHERS) as thread:
                await _run(thread, ready)
        except LeaseLost as error:
            logger.warning("%s", error.message)


async def _run(thread: LedgerThread, ready: Callable[[], None]) -> None:
    health = Health()
    sources = Sources(_read_block, lambda: datetime.now(UTC))
    watching = Watching(thread, sources.open, ready)
    with one_reason():
        async with asyncio.TaskGroup() as group:
            group.create_task(keep_going("lease", partial(_keep_lease, thread, health), health))
            group.create_task(keep_going("binding", partial(_check_decider, thread, health), health))
            group.create_task(watching.run())


async def _keep_lease(thread: LedgerThread, health: Health) -> None:
    while True:
        await asyncio.sleep(LEASE_SECONDS / 4)
        await thread.renew_lease()
        health.up("lease")


async def _check_decider(thread: LedgerThread, health: Health) -> None:
    """Stop when another ledger decides for this Prefect: updates would start nothing here."""
    # Without an address, Prefect's client would start a server of its own to be asked.
    decider = Decider(thread.ledger.reader, lambda: deciding_ledger() if read_connection().url else None)
    looks = Looks()
    while True:
        other = await looks.take(decider.other)
        health.up("binding")
        if other is not None:
            raise LedgerForeign(
                f"this Prefect belongs to the ledger {other}, which has its own watchers",
                fix="Start `assetflow watcher` with that ledger (ASSETFLOW_HOME, ASSETFLOW_DATABASE_URL)",
            )
        await asyncio.sleep(ASK_EVERY)


async def _read_block(name: str) -> str:
    async with prefect_api() as api:
        url = await read_url_block(api, name)
    if url is None:
        raise WatchingFailed(f"Prefect has no block {name} that holds a URL", fix="Create a Secret block of this name")
    return url
