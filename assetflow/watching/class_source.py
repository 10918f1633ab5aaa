"""A class of the user's own as a source: it runs in a process of its own, and each change is recorded alone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from assetflow.core.values.addresses import with_variables
from assetflow.core.values.watchers import ClassTrigger
from assetflow.core.watchers.intake import Watched, WatcherIntake
from assetflow.core.watchers.table_changes import CURSOR, Change, Found, intake_of
from assetflow.errors import WatchingFailed
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.watching import class_process

SECONDS_TO_END = 1.0


class ClassSource:
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

    async def lag(self) -> int | None:
        """Return `None`: the class does not tell."""
        return None

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
