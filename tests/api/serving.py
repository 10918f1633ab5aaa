"""An application behind a real server, in a thread of the test's process, on a port of its own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from assetflow.api.connections import server_config
from tests.environment.waiting import until

SECONDS = 20


@contextmanager
def serving(app: FastAPI, **config: str) -> Iterator[str]:
    """The address at which the application answers within the block."""
    server = uvicorn.Server(server_config(app, **config))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield from _running(server, listener)


def _running(server: uvicorn.Server, listener: socket.socket) -> Iterator[str]:
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        assert server.started, "the server did not start"
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(SECONDS)
