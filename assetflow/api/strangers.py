"""Bound what strangers can make the server hold: the bodies of requests that need no key."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

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
