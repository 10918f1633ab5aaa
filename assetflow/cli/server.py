"""`assetflow server start`: run the evaluator, the REST API and the pages in one process."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated, Any

import uvicorn
from cyclopts import App, Parameter
from fastapi import FastAPI

from assetflow.api.app import create_app
from assetflow.api.connections import server_config, tell_seldom_of_full_files
from assetflow.api.requests import Backend
from assetflow.api.security import Keys, access_for
from assetflow.cli.processes import log_to_stderr, stopped_by_signals
from assetflow.cli.values import Port, since_option
from assetflow.errors import PortInUse
from assetflow.evaluator.process.evaluator import Evaluator, Options
from assetflow.evaluator.process.service import evaluate, freeze_garbage_collection, ready_marker
from assetflow.ledger import Ledger
from assetflow.operations.deciding_ledger import Decider
from assetflow.operations.installation import nothing
from assetflow.settings import get_settings
from assetflow.web import create_site

app = App(name="server", help="Evaluator, REST API and pages in one process.")

PORT = 4300

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
    """Run the evaluator and answer requests, until Ctrl-C or SIGTERM.

    Without a key (ASSETFLOW_API_KEY), the server listens on this machine only.

    Parameters
    ----------
    host
        The address to listen on.
    port
        The port to listen on; 0 chooses a free one, which the log shows.
    evaluator
        Run the evaluator too. Without it, another process has to run one.
    ui
        Serve the pages too.
    since
        Read again what Prefect has kept since this time, such as 2026-11-20 or 2026-11-20T08:00:00Z (UTC if no zone is
        given). Updates that are already recorded count once.
    take_over
        Use this ledger for a Prefect server that belongs to another ledger. The evaluator of the other ledger stops.
    """
    log_to_stderr()
    settings, since_time = get_settings(), since_option(since)
    keys = Keys(settings.api_key, settings.api_key_read, settings.api_key_emit)
    access = access_for(host, keys, settings.api_hosts.split(","))
    with Ledger.open() as ledger, _listening(host, port) as listener:
        pages = settings.ui_url or (_page_address(listener) if ui else "")
        service = _Service(Options(since=since_time, take_over=take_over, ui_url=pages))
        # The evaluator of this process asks Prefect itself, and notes the answer in the ledger.
        decider = Decider(ledger.reader, ask=nothing) if evaluator else Decider(ledger.reader)
        backend = Backend(ledger, on_recorded=service.wake, other_ledger=decider.other, troubles=service.troubles)
        site = create_site(backend, access) if ui else create_app(backend, access)
        # Open pages keep their streams open, and the server would wait for them when it stops.
        on_stop = site.state.live.stop if ui else nothing
        asyncio.run(service.run(site, listener, evaluating=evaluator, on_stop=on_stop))


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class _Service:
    """The server and the evaluator, side by side: when one ends, the other ends too."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._evaluator: Evaluator | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def wake(self) -> None:
        """Tell the evaluator that there may be a decision to launch. Safe to call from any thread."""
        if self._loop is not None and self._evaluator is not None:
            self._loop.call_soon_threadsafe(self._evaluator.launcher.wake)

    def troubles(self) -> dict[str, str]:
        return self._options.health.troubles

    async def run(
        self, api: FastAPI, listener: socket.socket, *, evaluating: bool, on_stop: Callable[[], None]
    ) -> None:
        """Serve until a signal comes.

        Parameters:
            api: the application to serve.
            listener: the socket to serve it on.
            evaluating: run the evaluator too.
            on_stop: called at the end, to end responses that would otherwise go on for ever.

        Raises:
            AssetflowError: as `evaluate` does.
        """
        self._loop = asyncio.get_running_loop()
        stop = stopped_by_signals()
        tell_seldom_of_full_files(self._loop)
        server = _Server(server_config(api, proxies=get_settings().api_proxies))
        working: set[asyncio.Task[Any]] = {asyncio.create_task(server.serve([listener]))}
        if evaluating:
            working.add(asyncio.create_task(evaluate(self._options, stop=stop, at_work=self._at_work)))
        else:
            freeze_garbage_collection()
        logger.info("listening on %s", address_of(listener))
        working.add(asyncio.create_task(stop.wait()))
        await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        on_stop()
        server.should_exit = True
        for each in await asyncio.gather(*working, return_exceptions=True):
            if isinstance(each, BaseException):
                raise each
        logger.info("stopped")

    @contextmanager
    def _at_work(self, evaluator: Evaluator) -> Generator[None]:
        self._evaluator = evaluator
        freeze_garbage_collection()
        try:
            with ready_marker(get_settings().home, evaluator):
                yield
        finally:
            self._evaluator = None


def address_of(listener: socket.socket) -> str:
    """Return the URL of the server that listens on the socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _page_address(listener: socket.socket) -> str:
    """Return the URL for links to the pages, or an empty text if the server listens on all addresses."""
    host = listener.getsockname()[0]
    return "" if host in ("0.0.0.0", "::") else address_of(listener)


@contextmanager
def _listening(host: str, port: int) -> Generator[socket.socket]:
    """Open a socket on the address and close it at the end.

    Raises:
        PortInUse: the port is taken, or the address does not belong to this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise PortInUse(
            f"cannot listen on {host}, port {port}: {error}",
            fix="Stop the process that listens there, or choose another port with --port",
        ) from error
    with listener:
        yield listener
