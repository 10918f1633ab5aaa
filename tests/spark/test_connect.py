"""The Connect server of an ASSETFLOW_HOME: found again, never mistaken for another process, and said when it fails."""

import os
import stat
import subprocess
import sys

import pytest

from assetflow.errors import SparkUnreachable
from assetflow.spark.connect import LocalServer, discovery_file, own_local_server, stop_recorded_server
from assetflow.spark.java import use_java


@pytest.fixture(autouse=True)
def folder() -> None:
    discovery_file().parent.mkdir(parents=True)


def test_the_record_is_for_its_owner_only() -> None:
    server = LocalServer(1, 2, "secret", "4.3.0")
    server.record()
    assert LocalServer.recorded() == server
    assert stat.S_IMODE(discovery_file().stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": "localhost", "port": 15002, "pid": 1}'])
def test_a_record_that_cannot_be_read_is_none(text: str) -> None:
    discovery_file().write_text(text)
    assert LocalServer.recorded() is None
    assert not stop_recorded_server()


def test_a_process_that_has_the_number_now_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        LocalServer(other.pid, 1, "secret", "4.3.0").record()
        assert not stop_recorded_server()
        assert not discovery_file().exists()
        assert other.poll() is None
        other.communicate(b"\n")
    assert other.returncode == 0


@pytest.mark.long
@pytest.mark.spark
def test_one_that_cannot_start_is_an_error_with_the_reason() -> None:
    use_java()
    before = os.environ.get("SPARK_CONNECT_AUTHENTICATE_TOKEN")
    with pytest.raises(SparkUnreachable, match="did not start") as caught:
        own_local_server("local[1]", {"spark.driver.memory": "some"})
    assert "connect.log" in caught.value.where
    assert not discovery_file().exists()
    assert os.environ.get("SPARK_CONNECT_AUTHENTICATE_TOKEN") == before
