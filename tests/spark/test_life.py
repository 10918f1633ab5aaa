"""A session that all tasks share: a task cannot stop it, its end is noticed, and its errors say their reason."""

import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from pyspark import SparkContext
from pyspark.sql import SparkSession

from assetflow.errors import SparkUnreachable
from assetflow.spark import session
from assetflow.spark.connect import stop_recorded_server


@pytest.mark.rule("2.8")
@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("remote", ["", "local"])
def test_errors_stops_and_the_end_of_spark(child: Callable[..., Any], tmp_path: Path, remote: str) -> None:
    try:
        found = child("life_child.py", str(tmp_path), ASSETFLOW_SPARK_REMOTE=remote, ASSETFLOW_SPARK_MASTER="local[1]")
    finally:
        stop_recorded_server()
    place = f"{Path(__file__).with_name('life_child.py')}:35"
    assert f"ZeroDivisionError: integer division or modulo by zero ({place})" in found["udf"]
    assert "Failed to find the data source: delta" in found["delta"]
    assert "SparkRuntimeException: [USER_RAISED_EXCEPTION] no" in found["sql"]
    assert found["stopped"] == "ValueError: order 17 has no customer"
    assert found["same"]
    assert found["lives"]
    assert found["share"] < 0.2, "asking whether the session lives costs more than a fifth of the smallest job"
    assert found["died"] == "no error: done"
    assert found["again"] == 4
    assert found["final"] == 5


def test_a_jvm_whose_port_is_closed_has_ended_although_its_process_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        gateway: Any = JavaGateway(gateway_parameters=GatewayParameters(port=closed.getsockname()[1]))
    for name, value in {"_gateway": gateway, "_jvm": gateway.jvm, "_active_spark_context": None}.items():
        monkeypatch.setattr(SparkContext, name, value)
    gateway.proc = SimpleNamespace(poll=lambda: None)
    context: Any = object.__new__(SparkContext)
    context._jsc = gateway.entry_point
    session.end(cast("SparkSession", SimpleNamespace(sparkContext=context)))
    assert SparkContext._gateway is None


def test_a_jvm_that_hangs_is_an_error_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "in_time", lambda *_: session.NO_ANSWER)
    monkeypatch.setattr(session, "is_remote", lambda: False)
    with pytest.raises(SparkUnreachable, match="has not answered within 5 seconds"):
        session.lives(SimpleNamespace())  # pyright: ignore[reportArgumentType]
