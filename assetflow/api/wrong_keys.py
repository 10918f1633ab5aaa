"""Slow down clients that show wrong API keys, counted by address. A right one never waits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network, ip_address

from assetflow.api.connections import Seldom

logger = logging.getLogger("assetflow.api")

FREE = 3
LONGEST = 5.0
FORGOTTEN = 15 * 60.0
ADDRESSES = 10_000
WAITING = 32


@dataclass
class _Tries:
    """The wrong API keys from one address: how many, when the last one came, and when its answer is due."""

    count: int = 0
    last: float = 0.0
    due: float = 0.0


class WrongKeys:
    """The wrong API keys that were shown to one server, counted by address.

    After three wrong keys, the server gives the next answers one by one, with pauses of 1, 2, 4 and then 5 seconds. It
    refuses at once a request that would wait longer, so that nobody can hold connections open this way.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._tries: OrderedDict[str, _Tries] = OrderedDict()
        self._waiting = 0
        self._may_tell = Seldom(10.0, clock)

    async def pause(self, address: str) -> int:
        """Count one more wrong key from this address, and wait before its answer.

        Returns:
            0, or, if the wait would be too long, the seconds after which the client may try again.
        """
        now = self._clock()
        tries = self._one_more(_place(address), now)
        if self._may_tell():
            logger.warning("wrong API key from %s: %d so far", _place(address), tries.count)
        if tries.count <= FREE:
            return 0
        seconds = max(tries.due - now, 0.0) + min(LONGEST, 2.0 ** min(tries.count - FREE - 1, 10))
        if seconds > LONGEST or self._waiting >= WAITING:
            return int(LONGEST)
        tries.due = now + seconds
        self._waiting += 1
        try:
            await self._sleep(seconds)
        finally:
            self._waiting -= 1
        return 0

    def _one_more(self, place: str, now: float) -> _Tries:
        tries = self._tries.pop(place, None)
        if tries is None or now - tries.last > FORGOTTEN:
            tries = _Tries()
        tries.count += 1
        tries.last = now
        self._tries[place] = tries
        if len(self._tries) > ADDRESSES:
            self._tries.popitem(last=False)
        return tries


def _place(address: str) -> str:
    """Return the address, or for IPv6 the network of one customer, under which wrong keys are counted."""
    try:
        found = ip_address(address)
    except ValueError:
        return "an unknown address"
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or IPv6Network((int(found), 64), strict=False))
    return str(found)
