"""Read several of Prefect's logs as one, in the order of time, and log the progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from logging import Logger

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
