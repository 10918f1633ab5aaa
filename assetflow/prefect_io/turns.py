"""Take turns: one task at a time, until a turn takes too long; then the next begins beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from uuid import UUID

SECONDS = 1.0
SLOW_AT_ONCE = 4


class Turns:
    """A lock that a slow holder keeps only for a limited time.

    A turn ends after `seconds` at the latest; then the next one begins, even if the holder is still working. A holder
    that took longer and failed is slow until it succeeds, or fails faster: slow holders wait only for each other.

    Attributes:
        seconds: the length of a turn.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._turn = asyncio.Lock()
        self._aside = asyncio.Semaphore(SLOW_AT_ONCE)
        self._slow: set[UUID] = set()

    @asynccontextmanager
    async def of(self, who: UUID) -> AsyncGenerator[None]:
        """Wait for the turn of `who`, and hold it for the block."""
        if who in self._slow:
            async with self._aside:
                with self._timed(who, lambda: None):
                    yield
            return
        await self._turn.acquire()
        pass_on = _Once(self._turn.release)
        try:
            with self._timed(who, pass_on):
                yield
        finally:
            pass_on()

    @contextmanager
    def _timed(self, who: UUID, on_late: Callable[[], None]) -> Generator[None]:
        """Call `on_late` if the block takes longer than a turn, and note that `who` is slow."""
        began = asyncio.get_running_loop().time()
        timer = asyncio.get_running_loop().call_later(self.seconds, on_late)
        try:
            yield
        except Exception:
            is_late = asyncio.get_running_loop().time() - began >= self.seconds
            (self._slow.add if is_late else self._slow.discard)(who)
            raise
        else:
            self._slow.discard(who)
        finally:
            timer.cancel()


class _Once:
    """A function that does nothing when it is called again."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function: Callable[[], None] | None = function

    def __call__(self) -> None:
        function, self._function = self._function, None
        if function is not None:
            function()
