"""Something between the evaluator and Prefect that breaks: cut and stalled websockets, errors, lies, lost answers."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

import httpx

CHUNK = 65536
HOP_BY_HOP = {"connection", "transfer-encoding", "content-encoding", "content-length", "host"}

Fault = Literal["500", "503", "404", "400", "409", "413", "422", "hang", "lose the answer"] | dict[str, Any] | None
"""An error; no answer; the request arrives and its answer does not; a false answer, as JSON; none of these.

The 404 is that of a router which does not know the path; 400, 409, 413 and 422 are refusals as Prefect writes them.
"""

Rule = Callable[[str, str], Fault]


class Proxy:
    """Passes requests and websockets on to Prefect, except where it is told not to.

    Attributes:
        rule: what goes wrong with a request, given its method and path.
        faults: how many went wrong.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.rule: Rule = lambda _method, _path: None
        self.faults = 0
        self._stalled = threading.Event()
        self._cut = threading.Event()
        self._over = threading.Event()
        proxy = self

        class Handler(_Handler):
            through = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.api_url = f"http://127.0.0.1:{self._server.server_address[1]}/api"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def websockets_cut(self) -> Iterator[None]:
        """No websocket within the block: those that are open end, new ones are refused."""
        self._cut.set()
        yield
        self._cut.clear()

    @contextmanager
    def websockets_stalled(self) -> Iterator[None]:
        """Within the block websockets stay open and nothing comes through, so that the server is left behind."""
        self._stalled.set()
        yield
        self._stalled.clear()

    @contextmanager
    def broken(self, rule: Rule) -> Iterator[None]:
        """Within the block requests go wrong as the rule says."""
        self.rule = rule
        yield
        self.rule = lambda _method, _path: None

    def wait(self, seconds: float) -> None:
        """Until this time has passed, or the proxy ends."""
        self._over.wait(seconds)

    def tunnel(self, client: socket.socket, head: bytes) -> None:
        """Pass a websocket on until one side, or the proxy, ends it."""
        if self._cut.is_set():
            return
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            server.sendall(head)
            with suppress(OSError, ValueError):
                # Asked here too: a websocket may open while the others are cut.
                while not (self._over.is_set() or self._cut.is_set()):
                    self._pump(client, server)

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        if self._stalled.is_set():
            self._over.wait(0.05)
            return
        for ready in select.select([client, server], [], [], 0.1)[0]:
            data = ready.recv(CHUNK)
            if not data:
                raise ConnectionResetError
            (server if ready is client else client).sendall(data)


class _Handler(BaseHTTPRequestHandler):
    through: Proxy
    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        with suppress(ConnectionError):
            super().handle_one_request()

    def _any(self) -> None:
        if self.headers.get("Upgrade", "").lower() == "websocket":
            head = f"{self.requestline}\r\n{self.headers}".replace("\r\n", "\n").replace("\n", "\r\n")
            self.through.tunnel(self.connection, head.encode())
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.through.rule(self.command, self.path)
        if fault is not None:
            self.through.faults += 1
        self._answer(fault, body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815 (the names that the base class looks for)

    def _answer(self, fault: Fault, body: bytes) -> None:
        if isinstance(fault, dict):
            self._send(200, json.dumps(fault).encode(), {"Content-Type": "application/json"})
        elif fault in ("500", "503", "400", "409", "413", "422"):
            self._send(int(fault), b'{"detail": "broken"}', {"Content-Type": "application/json"})
        elif fault == "404":
            self._send(404, b'{"detail": "Not Found"}', {"Content-Type": "application/json"})
        elif fault == "hang":
            # Longer than anybody waits.
            self.through.wait(20)
            self.close_connection = True
        else:
            answer = self._forward(body)
            if fault == "lose the answer":
                self.close_connection = True
            else:
                headers = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
                self._send(answer.status_code, answer.content, headers)

    def _forward(self, body: bytes) -> httpx.Response:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        url = f"http://127.0.0.1:{self.through.port}{self.path}"
        try:
            with httpx.Client(timeout=60) as client:
                return client.request(self.command, url, headers=headers, content=body)
        except httpx.TransportError as error:
            raise ConnectionResetError from error

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Be quiet."""
