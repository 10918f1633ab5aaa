"""Let Prefect's server on SQLite write for one request at a time, where it would refuse the others."""

from __future__ import annotations

import asyncio
import gc
import itertools
import runpy
import sys
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

REFUSED = 503
FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5
# After that, whoever asks hears of the refusal, and Prefect's client asks again.
SECONDS_TO_REPEAT = 10.0
# A request that waits for another one of the same server would never end if that one waited for its turn.
SECONDS_TO_WAIT = 10.0

# What these paths end with only reads, although it is a POST.
_READS = ("/filter", "/count", "/history", "/lateness", "/paginate", "/read")


class OneWriter:
    """Handle requests that may write one after the other, and repeat one that SQLite has refused.

    SQLite has one writer. Prefect's server begins its transactions with reading; if another process writes before
    such a transaction does, SQLite refuses it at once. The server then answers 503, and Prefect's client asks again
    after 2, 4, 8, 16 and 32 seconds. Many flow runs that start at once therefore wait most of the time.

    Requests that follow each other do not refuse each other. The server's own services write, too: what they lead to
    is repeated here after milliseconds, as the client would repeat it after seconds. A refused request has changed
    nothing.

    Parameters:
        app: the ASGI application of Prefect's server.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if not _may_write(scope):
            await self._app(scope, receive, send)
            return
        body = await _body(receive)
        if body is not None:
            await self._handle(scope, body, receive, send)

    async def _handle(self, scope: Message, body: bytes, receive: Receive, send: Send) -> None:
        end, pause = time.monotonic() + SECONDS_TO_REPEAT, FIRST_PAUSE
        while time.monotonic() < end:
            attempt = _Attempt(body, receive, send)
            async with self._own_turn():
                await attempt.make(self._app, scope)
            if not attempt.refused:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        await self._app(dict(scope), _replay(body, receive), send)

    @asynccontextmanager
    async def _own_turn(self) -> AsyncGenerator[None, None]:
        try:
            async with asyncio.timeout(SECONDS_TO_WAIT):
                await self._turn.acquire()
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            self._turn.release()


class _Attempt:
    """One attempt to handle a request, whose answer is kept back if it is a refusal."""

    def __init__(self, body: bytes, receive: Receive, send: Send) -> None:
        self._receive = _replay(body, receive)
        self._send = send
        self.refused = False

    async def make(self, app: App, scope: Message) -> None:
        try:
            # The application writes into the scope.
            await app(dict(scope), self._receive, self._pass_on)
        except Exception:
            # Starlette raises what led to the answer once more, for the server's log.
            if not self.refused:
                raise

    async def _pass_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.refused = message["status"] == REFUSED
        if not self.refused:
            await self._send(message)


def _may_write(scope: Message) -> bool:
    if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
        return False
    return not str(scope["path"]).endswith(_READS)


async def _body(receive: Receive) -> bytes | None:
    """Return the body of a request, or `None` if its sender has gone."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return what gives the application a body that was received before, and then what comes after it."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


SECONDS = 1.0
# Python collects its oldest objects more rarely than the younger ones, too.
ROUNDS_UNTIL_ALL = 30
# By then, the server has imported everything. That stays, and costs a third of a second if it is looked through.
ROUNDS_UNTIL_STARTED = 10


def collect_garbage_in_a_thread(seconds: float = SECONDS) -> None:
    """Collect this process's garbage in a daemon thread, and no longer in the threads that make it.

    Parameters:
        seconds: the pause between two collections.
    """
    gc.disable()
    threading.Thread(target=_collect, args=(seconds,), name="garbage", daemon=True).start()


def _collect(seconds: float) -> None:
    for rounds in itertools.count(1):
        time.sleep(seconds)
        if rounds == ROUNDS_UNTIL_STARTED:
            gc.collect()
            gc.freeze()
        else:
            gc.collect(2 if rounds % ROUNDS_UNTIL_ALL == 0 else 1)


def serve_many_on_sqlite() -> None:
    """Let requests that write take turns, and any number of flow runs listen, if Prefect's database is on SQLite."""
    # Whoever needs only the name of this module is spared the import of Prefect.
    from prefect.settings import get_current_settings

    from assetflow.prefect_io.internals import leave_websockets_out_of_the_limit, pass_requests_through

    url = get_current_settings().server.database.connection_url
    if url is not None and url.get_secret_value().startswith("sqlite"):
        leave_websockets_out_of_the_limit()
        pass_requests_through(OneWriter)


def main() -> None:
    """Run `prefect server start` with the options of the command line."""
    collect_garbage_in_a_thread()
    serve_many_on_sqlite()
    sys.argv[1:] = ["server", "start", *sys.argv[1:]]
    runpy.run_module("prefect", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
