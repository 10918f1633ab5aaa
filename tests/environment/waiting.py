"""Wait until what another process, thread or task does has happened, and fail if it does not happen in time."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

SECONDS = 120.0

# The pause between two looks, in seconds. It grows with the wait: a long one asks a server rarely, and the answer is
# seen at most a tenth of the wait too late.
SHORTEST = 0.005
LONGEST = 0.25

T = TypeVar("T")


def until(condition: Callable[[], T | None], *, seconds: float = SECONDS, told: Callable[[], str] = str) -> T:
    """Return the condition's first true value.

    Parameters:
        condition: called again and again in this thread.
        seconds: how long to wait for it.
        told: what a failure says besides, such as the log of the process that is waited for.
    """
    pauses = _pauses(seconds)
    while not (found := condition()):
        pause = next(pauses)
        assert pause is not None, f"not within {seconds:g} s\n{told()}"
        time.sleep(pause)
    return found


async def until_async(condition: Callable[[], Awaitable[T | None] | T | None], *, seconds: float = SECONDS) -> T:
    """Return the condition's first true value, while other tasks of the event loop go on.

    Parameters:
        condition: a function or a coroutine function.
        seconds: how long to wait for it, a call that does not return included.
    """
    pauses = _pauses(seconds)
    async with asyncio.timeout(seconds):
        while not (found := await _value(condition())):  # noqa: ASYNC110 (anything may make it true)
            await asyncio.sleep(next(pauses) or 0)
        return found


def _pauses(seconds: float) -> Iterator[float | None]:
    """Yield the pause after each look that was in vain, and `None` after `seconds`."""
    begin = time.monotonic()
    while (waited := time.monotonic() - begin) < seconds:
        yield min(max(waited / 10, SHORTEST), LONGEST)
    yield None


async def _value(given: Awaitable[T | None] | T | None) -> T | None:
    return await given if inspect.isawaitable(given) else given
