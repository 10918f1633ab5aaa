"""The server that other tests rely on: it answers, keeps its data over a restart, and goes away."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.environment.prefect_server import PrefectServer
from tests.environment.processes import left_running

pytestmark = pytest.mark.prefect


def variable(server: PrefectServer, name: str) -> object:
    with server.http() as http:
        return http.get(f"/variables/name/{name}").raise_for_status().json()["value"]


def set_variable(server: PrefectServer, name: str, value: object) -> None:
    with server.http() as http:
        http.post("/variables/", json={"name": name, "value": value}).raise_for_status()


async def test_prefect_in_this_process_talks_to_the_shared_server(prefect_here: PrefectServer) -> None:
    from prefect import get_client

    async with get_client() as client:
        assert str(client.api_url).rstrip("/") == prefect_here.api_url
        assert await client.api_healthcheck() is None


@pytest.mark.long
def test_stop_and_start_keep_the_data(tmp_path: Path) -> None:
    with PrefectServer(tmp_path / "home") as server:
        set_variable(server, "kept", 7)
        server.stop()
        with pytest.raises(httpx.ConnectError):
            variable(server, "kept")
        server.start()
        assert variable(server, "kept") == 7
        server.kill()
        server.start()
        assert variable(server, "kept") == 7


@pytest.mark.long
def test_a_server_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    settings = {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{tmp_path / 'no' / 'such' / 'folder.db'}"
    }
    server = PrefectServer(tmp_path / "home", settings)
    with pytest.raises(RuntimeError, match="unable to open database file"):
        server.start()
    assert not [process for process in left_running(wait=0) if str(server.port) in process.command]
