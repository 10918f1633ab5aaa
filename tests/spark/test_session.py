"""One session per process, in one mode; what cannot be is said."""

import logging
import socket
import time
from collections.abc import Callable, Generator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from assetflow.errors import SparkNotInstalled, SparkSettingsConflict, SparkUnreachable
from assetflow.spark.connect import discovery_file, probe_connect, stop_recorded_server
from assetflow.spark.session import SparkProfile, get_session
from tests.environment.prefect_server import free_port


@pytest.fixture
def deaf_port() -> Generator[int]:
    """A port that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


@pytest.fixture
def local_server() -> Generator[None]:
    yield
    assert stop_recorded_server()
    assert not discovery_file().exists()


def test_without_pyspark_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assetflow.spark.session.find_spec", lambda _: None)
    with pytest.raises(SparkNotInstalled, match=r"pip install 'assetflow\[spark\]'"):
        get_session()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("sc://127.0.0.1:FREE", "refused"),
        ("sc://localhost:DEAF", "no answer|does not speak"),
        ("sc://127.0.0.1:DEAF/;token=abc", "no answer|does not speak"),
        ("sc://no-such-host.invalid", "15002"),
    ],
)
def test_what_is_no_server_fails_in_time(deaf_port: int, url: str, reason: str) -> None:
    import pyspark.sql.connect.client  # noqa: F401 (its import is not what is timed)

    started = time.monotonic()
    with pytest.raises(SparkUnreachable, match=reason) as caught:
        probe_connect(url.replace("FREE", str(free_port())).replace("DEAF", str(deaf_port)))
    assert time.monotonic() - started < 5
    assert "localhost" in caught.value.fix


@pytest.mark.long
@pytest.mark.spark
class TestClassic:
    def test_all_threads_share_one(self, spark: Any) -> None:
        found: list[Any] = []
        threads = [Thread(target=lambda: found.append(get_session(SparkProfile(master="local[2]")))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(each is spark for each in found)
        assert len(found) == 4

    def test_connect_is_refused_beside_it(self, spark: Any) -> None:  # noqa: ARG002
        with pytest.raises(SparkSettingsConflict, match="classic"):
            get_session(SparkProfile(remote="local"))

    def test_what_can_change_changes(self, spark: Any) -> None:
        get_session(SparkProfile(master="local[2]", conf={"spark.sql.shuffle.partitions": "3"}))
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"

    def test_what_cannot_change_is_said_loudly(self, spark: Any, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, "assetflow.spark"):
            assert get_session(SparkProfile(master="local[7]", conf={"spark.driver.memory": "9g"})) is spark
        assert "spark.master=local[2], and a task asks for local[7]" in caplog.text
        assert "asks for 9g" in caplog.text


@pytest.mark.long
@pytest.mark.spark
def test_everything_works_on_the_shared_local_connect_server(
    child: Callable[..., Any],
    tmp_path: Path,
    local_server: None,  # noqa: ARG001
) -> None:
    lake = tmp_path / "lake"
    first = child("connect_child.py", str(lake), ASSETFLOW_SPARK_REMOTE="local")
    assert first == {
        "rows": [0, 1, 2, 10, 11],
        "metrics": {"rows": 2, "files": 1},
        "pinned": 3,
        "empty": 0,
        "failed": "PublishFailed",
        "checks": [[True] * 5, [8, 0, 5, 0, 2]],
        "checked": 3,
        "tags": ["mine"],
        "classic": "SparkSettingsConflict",
        "other server": "SparkSettingsConflict",
    }
    server = discovery_file().read_text()
    assert child("connect_child.py", str(lake), ASSETFLOW_SPARK_REMOTE="local") == first
    assert discovery_file().read_text() == server
