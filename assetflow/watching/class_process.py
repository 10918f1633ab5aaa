"""The process in which a watcher's own class runs: `python -m assetflow.watching.class_process`.

It reads one line with the class, its options and the cursor, and writes a line for each change. It goes on when an
empty line says that the change is recorded, and ends when its input ends. What the class prints goes to the log.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any, TextIO

from assetflow.core.watchers.changes import Change


async def run(out: TextIO) -> None:
    """Run the class until it fails, or until the input ends."""
    given = asyncio.StreamReader(limit=2**24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(given), sys.stdin)
    order: dict[str, Any] = json.loads(await given.readline())
    recorded: asyncio.Queue[None] = asyncio.Queue()
    listening = asyncio.create_task(_listen(given, recorded))
    try:
        async for change in _changes(order):
            _tell(out, {"change": _as_json(change)})
            await recorded.get()
        _tell(out, {"error": "watch() has ended"})
    except Exception as error:
        traceback.print_exc()
        _tell(out, {"error": f"{type(error).__name__}: {error}"})
    finally:
        listening.cancel()


def _changes(order: dict[str, Any]) -> AsyncIterator[object]:
    module, _, name = order["path"].partition(":")
    return getattr(import_module(module), name)(**order["options"]).watch(order["cursor"])


async def _listen(given: asyncio.StreamReader, recorded: asyncio.Queue[None]) -> None:
    while await given.readline():
        recorded.put_nowait(None)
    # The process that watches has ended.
    os._exit(0)


def _as_json(change: object) -> dict[str, object]:
    if not isinstance(change, Change):
        raise TypeError(f"watch() yields {change!r}, which is not a Change")
    return {
        "id": change.id,
        "extra": dict(change.extra),
        "partition_key": change.partition_key,
        "occurred": change.occurred.isoformat() if change.occurred else None,
        "label": change.label,
        "cursor": change.cursor,
    }


def _tell(out: TextIO, said: dict[str, object]) -> None:
    out.write(json.dumps(said) + "\n")
    out.flush()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # As for `python -m` of the user's own, modules of the current folder can be imported.
    sys.path.insert(0, "")
    asyncio.run(run(answers))
