"""The process in which a watcher's own class runs: `python -m assetflow.watching.class_process`.

It reads one line with the class, its options and the cursor, and writes a line for each change. It continues when an
empty line says that the change is recorded. When its input ends, it ends with all processes that the class has begun,
whatever the class does then. What the class prints goes to the log.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Callable
from functools import partial
from importlib import import_module
from threading import Thread
from typing import Any, BinaryIO, TextIO

from assetflow.core.json_data import check_json
from assetflow.core.watchers.table_changes import Change

MOST_BYTES = 2**24


async def run(given: BinaryIO, out: TextIO) -> None:
    """Run the class until it fails, or until the input ends."""
    order: dict[str, Any] = json.loads(given.readline())
    recorded: asyncio.Queue[None] = asyncio.Queue()
    go_on = partial(asyncio.get_running_loop().call_soon_threadsafe, recorded.put_nowait, None)
    # A class may block the event loop.
    Thread(target=_listen, args=(given, go_on), daemon=True).start()
    try:
        async for change in _changes(order):
            _tell(out, {"change": _as_json(change)})
            await recorded.get()
        _tell(out, {"error": "watch() has ended"})
    except Exception as error:
        traceback.print_exc()
        _tell(out, {"error": f"{type(error).__name__}: {error}"})


def _changes(order: dict[str, Any]) -> AsyncIterator[object]:
    module, _, name = order["path"].partition(":")
    return getattr(import_module(module), name)(**order["options"]).watch(order["cursor"])


def _listen(given: BinaryIO, go_on: Callable[[], object]) -> None:
    while given.readline():
        go_on()
    # The process that watches has ended, or wants this one to end.
    os.killpg(0, signal.SIGKILL)


def _as_json(change: object) -> dict[str, object]:
    if not isinstance(change, Change):
        raise TypeError(f"watch() yields {change!r}, which is not a Change")
    return {
        "id": change.id,
        "extra": dict(change.extra),
        "partition_key": change.partition_key,
        "occurred": change.occurred.isoformat() if change.occurred else None,
        "label": change.label,
        "cursor": check_json(change.cursor, "cursor"),
    }


def _tell(out: TextIO, said: dict[str, object]) -> None:
    line = json.dumps(said) + "\n"
    if len(line) > MOST_BYTES:
        raise ValueError(f"watch() yields a change with {len(line):,} bytes of JSON, the limit is {MOST_BYTES:,}")
    out.write(line)
    out.flush()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # As for `python -m` of the user's own, modules of the current folder can be imported.
    sys.path.insert(0, "")
    # At the end, Python would wait for the lock of `sys.stdin` in vain.
    asyncio.run(run(os.fdopen(os.dup(sys.stdin.fileno()), "rb"), answers))
