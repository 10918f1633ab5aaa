"""Calls that are repeated while the other side is busy or away, with growing pauses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 4.0
_BUSY = frozenset({408, 425, 429})


def is_busy(status: int) -> bool:
    """Whether an HTTP status says that the same request may be answered later."""
    return status >= 500 or status in _BUSY


class Patience:
    """The time that is left for a call and its repetitions; it runs from the first moment.

    Parameters:
        seconds: how long.
        sleep, clock: time, to be replaced in tests.
    """

    def __init__(
        self,
        seconds: float,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds = seconds
        self._sleep = sleep
        self._clock = clock
        self._deadline = clock() + seconds
        self._pause = _FIRST_PAUSE

    @property
    def left(self) -> float:
        """Seconds."""
        return self._deadline - self._clock()

    def pause(self, asked: float | None = None) -> bool:
        """Sleep before the next attempt; false, at once, if there would be no time left for it.

        Parameters:
            asked: seconds that the other side asks for, instead of a pause that grows from one to the next.
        """
        wait = self._pause * random.uniform(0.8, 1.2) if asked is None else asked
        if wait >= self.left:
            return False
        self._sleep(wait)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return True
