"""Connections of strangers to the server's port, while updates flow: the evaluator in the same process goes on."""

import resource
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx
import pytest

from assetflow.core.values.assets import Asset
from tests.environment.prefect_server import free_port
from tests.faults.conftest import Judged
from tests.faults.world import World
from tests.integration.installation import recording

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(600)]

STRANGERS = 1_300
# The server may have as many files as systemd gives a service.
SERVER = (
    "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)); from assetflow.cli import main; main()"
)
UPDATES = 12


@contextmanager
def strangers(port: int) -> Iterator[None]:
    """Hold so many connections open, each with half a header; one that is closed comes again."""
    over = threading.Event()
    crowd = threading.Thread(target=_crowd, args=(port, over), daemon=True)
    crowd.start()
    try:
        yield
    finally:
        over.set()
        crowd.join()


def _crowd(port: int, over: threading.Event) -> None:
    with selectors.DefaultSelector() as selector:
        while not over.wait(0.01):
            for key, _ in selector.select(0):
                selector.unregister(key.fileobj)
                key.data.close()
            for _ in range(min(50, STRANGERS - len(selector.get_map()))):
                with suppress(OSError):
                    one = socket.create_connection(("127.0.0.1", port), timeout=1)
                    one.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-Half: ")
                    selector.register(one, selectors.EVENT_READ, one)
        for key in list(selector.get_map().values()):
            key.data.close()


@pytest.fixture(autouse=True)
def _enough_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * STRANGERS:
        pytest.skip(f"needs {2 * STRANGERS} files in one process")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * STRANGERS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.failure(
    "Prefect", "more than a thousand connections that send half a header", "log, once a minute; the evaluator works on"
)
def test_half_headers_without_end_while_updates_flow(world: World, judged: Judged) -> None:
    deployment, port = world.deploy("one", Asset(world.uri("a"))), free_port()
    world.begin("--port", str(port), program=("-c", SERVER, "server", "start"))
    with strangers(port):
        world.until(lambda: "connections are in use" in world.log, 60)
        for number in range(UPDATES):
            if number % 2:
                world.update(world.uri("a"))
            else:
                world.task_recorded(recording(world.uri("a")))
            world.until(lambda number=number: len(world.runs(deployment)) > number, 60)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as api:
        assert api.get("/health").is_success
    # Nobody can fill the disk with a log.
    assert len(world.log) < 100_000
    world.settle()
    assert judged(world).runs == UPDATES
