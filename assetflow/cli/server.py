"""`assetflow server start`: evaluator, REST API and pages in one process."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated

import uvicorn
from cyclopts import App, Parameter
from fastapi import FastAPI

from assetflow.api.app import create_app
from assetflow.api.backend import Backend
from assetflow.api.security import access_for
from assetflow.cli.moments import since_option
from assetflow.cli.process_log import log_to_stderr
from assetflow.cli.values import Port
from assetflow.errors import PortInUse
from assetflow.evaluator.collector import spare_what_stays
from assetflow.evaluator.evaluator import Evaluator, Options
from assetflow.evaluator.service import evaluate, ready_marker
from assetflow.ledger import Ledger
from assetflow.settings import get_settings
from assetflow.web import create_site

app = App(name="server", help="Evaluator, REST API and pages in one process.")

PORT = 4300
SECONDS_TO_FINISH = 5

logger = logging.getLogger("assetflow.server")


@app.command
def start(
    *,
    host: str = "127.0.0.1",
    port: Port = PORT,
    evaluator: Annotated[bool, Parameter(negative="--no-evaluator")] = True,
    ui: Annotated[bool, Parameter(negative="--no-ui")] = True,
    since: str | None = None,
    take_over: bool = False,
) -> None:
    """Evaluate, and answer requests, until Ctrl-C or SIGTERM.

    Listens on this machine only, unless there is a key (ASSETFLOW_API_KEY).

    Parameters
    ----------
    host
        The address to listen on.
    port
        The port; 0 for a free one, which is told.
    evaluator
        Evaluate as well; without it, another process has to.
    ui
        Serve the pages too.
    since
        Replay what Prefect has kept since this time, such as 2026-11-20 or 2026-11-20T08:00:00Z (UTC if no zone is
        given). Updates that are recorded already count once.
    take_over
        Use this ledger for a Prefect server that belongs to another one, whose evaluator then stops.
    """
    log_to_stderr()
    settings, moment = get_settings(), since_option(since)
    access = access_for(host, settings.api_key, settings.api_hosts.split(","))
    with Ledger.open() as ledger, _listening(host, port) as listener:
        pages = settings.ui_url or (_page_address(listener) if ui else "")
        service = _Service(Options(since=moment, take_over=take_over, ui_url=pages))
        backend = Backend(ledger, on_recorded=service.wake, troubles=service.troubles)
        site = create_site(backend, access) if ui else create_app(backend, access)
        # Streams of open pages would hold the end back.
        on_stop = site.state.live.stop if ui else _nothing
        asyncio.run(service.run(site, listener, evaluating=evaluator, on_stop=on_stop))


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class _Service:
    """Server and evaluator side by side: when one ends, the other does too."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._evaluator: Evaluator | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def wake(self) -> None:
        """There may be a decision to launch; called from any thread."""
        if self._loop is not None and self._evaluator is not None:
            self._loop.call_soon_threadsafe(self._evaluator.launcher.wake)

    def troubles(self) -> dict[str, str]:
        return self._options.health.troubles

    async def run(
        self, api: FastAPI, listener: socket.socket, *, evaluating: bool, on_stop: Callable[[], None]
    ) -> None:
        """Serve until a signal comes.

        Parameters:
            on_stop: ends answers that would go on for ever.

        Raises:
            as `evaluate`
        """
        self._loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, stop.set)
        config = uvicorn.Config(
            api, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=SECONDS_TO_FINISH
        )
        server = _Server(config)
        working: set[asyncio.Task[None]] = {asyncio.create_task(server.serve([listener]))}
        if evaluating:
            working.add(asyncio.create_task(self._evaluate(stop)))
        else:
            spare_what_stays()
        logger.info("listening on %s", address_of(listener))
        working.add(asyncio.create_task(_until(stop)))
        await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        on_stop()
        server.should_exit = True
        for each in await asyncio.gather(*working, return_exceptions=True):
            if isinstance(each, BaseException):
                raise each
        logger.info("stopped")

    async def _evaluate(self, stop: asyncio.Event) -> None:
        await evaluate(self._options, stop=stop, at_work=self._at_work)

    @contextmanager
    def _at_work(self, evaluator: Evaluator) -> Generator[None]:
        self._evaluator = evaluator
        spare_what_stays()
        try:
            with ready_marker(get_settings().home, evaluator):
                yield
        finally:
            self._evaluator = None


def _nothing() -> None: ...


async def _until(stop: asyncio.Event) -> None:
    await stop.wait()


def address_of(listener: socket.socket) -> str:
    """The address at which a socket can be called."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _page_address(listener: socket.socket) -> str:
    """The address to link to; empty if the server listens on all addresses, and may be called by any name."""
    host = listener.getsockname()[0]
    return "" if host in ("0.0.0.0", "::") else address_of(listener)


@contextmanager
def _listening(host: str, port: int) -> Generator[socket.socket]:
    """A socket that listens.

    Raises:
        PortInUse: the port is taken, or the address is not one of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise PortInUse(
            f"nothing can listen on {host}, port {port}: {error}",
            fix="Stop what listens there, or choose another one with --port",
        ) from error
    with listener:
        yield listener
