"""Loops that go on whatever happens, and say so once for each change."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from assetflow.errors import AssetflowError, EvaluatorRunning, LeaseLost, LedgerForeign

logger = logging.getLogger("assetflow.evaluator")

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 15.0
ENDS_ALL = (EvaluatorRunning, LeaseLost, LedgerForeign)


@dataclass
class Backoff:
    """Pauses that double from one failure to the next, up to a limit, and start anew after a success."""

    first: float = FIRST_PAUSE
    longest: float = LONGEST_PAUSE
    failures: int = 0

    def next(self) -> float:
        """The seconds to wait after one more failure."""
        pause = min(self.longest, self.first * 2 ** min(self.failures, 30))
        self.failures += 1
        return pause

    def reset(self) -> None:
        self.failures = 0


async def heard(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait for an event; whether it came within so many seconds.

    Not with `asyncio.wait_for`: before Python 3.12 it drops a cancellation that comes together with the event, and the
    loop that was to end goes on.
    """
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


class Health:
    """What works and what does not: one log line when that changes, none while it stays."""

    def __init__(self) -> None:
        self._down: dict[str, tuple[float, str]] = {}

    @property
    def troubles(self) -> dict[str, str]:
        """Each thing that does not work now, with the reason."""
        return {name: reason for name, (_, reason) in self._down.items()}

    def down(self, name: str, error: BaseException) -> None:
        """A thing failed; an error that is not ours gets its traceback into the log."""
        if name in self._down:
            return
        self._down[name] = (time.monotonic(), str(error))
        expected = isinstance(error, AssetflowError)
        logger.warning("%s: %s; trying again", name, error or repr(error), exc_info=None if expected else error)

    def up(self, name: str) -> None:
        """A thing works."""
        since = self._down.pop(name, None)
        if since is not None:
            logger.info("%s: works again after %.0f s", name, time.monotonic() - since[0])


async def keep_going(name: str, loop: Callable[[], Awaitable[None]], health: Health) -> None:
    """Run a loop, and start it anew after a pause when it fails; only what ends the whole evaluator gets through.

    The loop calls `health.up(name)` when it is at work.

    Raises:
        LeaseLost, LedgerForeign: another evaluator has taken over.
    """
    backoff = Backoff()
    while True:
        started = time.monotonic()
        try:
            await loop()
            return
        except ENDS_ALL:
            raise
        except Exception as error:
            health.down(name, error)
        if time.monotonic() - started > LONGEST_PAUSE:
            backoff.reset()
        await asyncio.sleep(backoff.next())
