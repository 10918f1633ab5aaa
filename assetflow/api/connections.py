"""Limit connections and guesses of keys, so that no client can block the others.

By default, uvicorn waits without a time limit for the rest of a header, and accepts connections until the process has
no files left. An evaluator in the same process could then reach neither Prefect nor its ledger.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, cast

import h11
import uvicorn
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive
from uvicorn.protocols.http.h11_impl import H11Protocol

logger = logging.getLogger("assetflow.server")

SECONDS_FOR_HEADER = 10.0
SECONDS_TO_FINISH = 5
MOST = 1000
_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Seldom:
    """A call that returns True at most once per period, so that strangers cannot fill the log."""

    def __init__(self, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next = float("-inf")

    def __call__(self) -> bool:
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True


class Connection(H11Protocol):
    """A connection that ends when its header takes too long, or when a newer one needs its place.

    While there are as many connections as `limit_concurrency` allows, each new one replaces the one that has waited
    longest for its client: for a request, for the rest of one, or for the client to read the answer.
    """

    seconds_for_header = SECONDS_FOR_HEADER
    may_tell = Seldom()

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Accept a new connection, and wait for its header."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._giving_up: asyncio.TimerHandle | None = None
        self._watch_header()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Read the data, and wait for the rest of the header if it is not complete."""
        super().data_received(data)
        self._watch_header()

    def on_response_complete(self) -> None:
        """Continue with the connection's next request."""
        self._since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_watching()
        super().connection_lost(exc)

    @property
    def waits(self) -> bool:
        """True if the client, not the server, has to do something next."""
        return self.flow.write_paused or self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def _watch_header(self) -> None:
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._stop_watching()
        elif self._giving_up is None:
            self._giving_up = self.loop.call_later(self.seconds_for_header, self.transport.abort)

    def _stop_watching(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None

    def _make_room(self) -> None:
        others = cast("set[Connection]", self.connections - {self})
        waiting = [each for each in others if each.waits and not each.transport.is_closing()]
        if waiting:
            longest = min(waiting, key=lambda each: each._since)
            longest.transport.abort()
            # A request may be read before the end of the connection is: uvicorn would still count it, and answer 503.
            self.connections.discard(longest)
        if self.may_tell():
            logger.warning(
                "all %d connections are in use: each new one replaces the one that has waited longest for its client",
                self.limit_concurrency,
            )


def server_config(app: FastAPI, *, proxies: str = "127.0.0.1,::1") -> uvicorn.Config:
    """Return the configuration of a server with bounded connections.

    Parameters:
        app: the application to serve.
        proxies: the addresses and networks, separated by commas, whose `X-Forwarded-For` and `X-Forwarded-Proto` the
            server trusts.
    """
    files = most_files()
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        limit_concurrency=min(MOST, files // 2),
        # asyncio accepts all waiting connections at once, before it looks at the first.
        backlog=min(128, files // 8),
        forwarded_allow_ips=proxies,
        log_config=None,
        # uvicorn warns about each invalid request: a client that sends many could fill the disk.
        log_level="error",
        access_log=False,
        timeout_graceful_shutdown=SECONDS_TO_FINISH,
    )


def most_files() -> int:
    """Return how many files this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2 * MOST if soft == resource.RLIM_INFINITY else soft


def tell_seldom_of_full_files(loop: asyncio.AbstractEventLoop) -> None:
    """Log one line a minute while no connection can be accepted, instead of asyncio's thousands of tracebacks."""
    may_tell = Seldom()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in _OUT_OF_FILES and "socket" in context):
            loop.default_exception_handler(context)
        elif may_tell():
            logger.warning("no connection can be accepted: %s; raise the limit (LimitNOFILE, ulimit -n)", error)

    loop.set_exception_handler(handle)


MOST_BYTES = 16 * 1024 * 1024
SECONDS_FOR_BODY = 10.0


class Strangers:
    """The bodies of requests without a key that the server holds now."""

    def __init__(self) -> None:
        self._bytes = 0

    @contextmanager
    def reading(self, receive: Receive) -> Generator[Receive]:
        """Yield a `receive` for one request, whose body is held until the end of the block.

        It raises an `HTTPException` if the body does not arrive in time, or if too much is held already.
        """
        held, is_whole = 0, False
        deadline = asyncio.get_running_loop().time() + SECONDS_FOR_BODY

        async def read() -> Message:
            nonlocal held, is_whole
            try:
                async with asyncio.timeout_at(None if is_whole else deadline):
                    message = await receive()
            except TimeoutError as error:
                raise HTTPException(408, f"the body did not arrive in {SECONDS_FOR_BODY:.0f} seconds") from error
            is_whole = not message.get("more_body", False)
            size = len(message.get("body", b""))
            held += size
            self._bytes += size
            if self._bytes > MOST_BYTES:
                raise HTTPException(503, "too many messages arrive at once; send it again", {"retry-after": "1"})
            return message

        try:
            yield read
        finally:
            self._bytes -= held


keys_logger = logging.getLogger("assetflow.api")

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
            keys_logger.warning("wrong API key from %s: %d so far", _place(address), tries.count)
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


def ip_of(address: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address that a text spells, or `None` if it spells none."""
    with suppress(ValueError):
        return ip_address(address)
    return None


def _place(address: str) -> str:
    """Return what counts as one place: an IPv4 address, or the network of an IPv6 address."""
    found = ip_of(address)
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or IPv6Network((int(found), 64), strict=False))
    return "an unknown address" if found is None else str(found)
