"""When a request that found the other side busy or away is sent again: one policy for every client."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

UNAUTHORIZED = frozenset({401, 403})
_REFUSALS = UNAUTHORIZED | {400, 404, 409, 413, 422}


def refuses(status: int) -> bool:
    """Return True if Prefect's API or assetflow's refuses a request with this HTTP status, and will refuse it again.

    Any other failure comes from a server in trouble, or from something on the way: the same request may succeed later.
    """
    return status in _REFUSALS


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a server asks to be asked again, or `None` if it names no number of seconds."""
    text = headers.get("Retry-After", "")
    return float(text) if text.replace(".", "", 1).isdigit() else None


@dataclass(frozen=True)
class AskAgain:
    """How often, and for how long, a request is sent again.

    Attributes:
        seconds: how long after the first attempt others may begin.
        times: how many attempts follow the first one at most.
        first_pause: seconds before the second attempt; each pause is twice as long as the one before.
        longest_pause: seconds that no pause exceeds.
    """

    seconds: float = math.inf
    times: float = math.inf
    first_pause: float = 0.1
    longest_pause: float = 4.0

    def start(self, clock: Callable[[], float] = time.monotonic) -> Attempts:
        """Return the attempts of one request; their time runs from now on."""
        return Attempts(self, clock)


class Attempts:
    """The attempts of one request.

    Attributes:
        policy: how often, and for how long.
    """

    def __init__(self, policy: AskAgain, clock: Callable[[], float]) -> None:
        self.policy = policy
        self._clock = clock
        self._deadline = clock() + policy.seconds
        self._pause = policy.first_pause
        self._times = policy.times

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self._deadline - self._clock()

    def pause(self, asked: float | None = None) -> float | None:
        """Return the seconds to wait before the next attempt; `None` if there is to be no other.

        Parameters:
            asked: seconds that the other side asks for, instead of a pause that grows from one to the next.
        """
        wait = self._pause * random.uniform(0.8, 1.2) if asked is None else asked
        if self._times < 1 or wait >= self.left:
            return None
        self._times -= 1
        self._pause = min(self._pause * 2, self.policy.longest_pause)
        return wait
