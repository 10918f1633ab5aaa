"""Spark's work ends when Prefect gives its task up: by a time limit, by a cancelled flow run, by an exception."""

import asyncio
from collections.abc import Awaitable, Callable
from threading import Thread
from typing import Any, cast
from uuid import UUID

import pytest
from prefect import flow
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Recording
from assetflow.spark.task import spark_task
from tests.environment.prefect_server import PrefectServer
from tests.environment.waiting import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.prefect,
    pytest.mark.usefixtures("spark", "prefect_here"),
    # With its own alarm, pytest would take away the one that Prefect sets for a task in the main thread.
    pytest.mark.timeout(120, method="thread"),
]

SECONDS_TO_STOP = 8.0


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Recording]:
    recordings: list[Recording] = []
    monkeypatch.setattr("assetflow.authoring.attempts.deliver", recordings.append)
    monkeypatch.setenv("ASSETFLOW_SPARK_MASTER", "local[2]")
    return recordings


@pytest.fixture
def active_jobs(spark: Any) -> Callable[[], list[int]]:
    # The first job of a JVM is slow.
    assert spark.range(3).where("xxhash64(id) = 42").count() == 0
    return lambda: list(spark.sparkContext.statusTracker().getActiveJobsIds())


def for_ever(spark: Any) -> Any:
    """Data that Spark would compute for hours."""
    return spark.range(0, 10**15, 1, 2).where("xxhash64(id) = 42")


def is_gone(active_jobs: Callable[[], list[int]], spark: Any) -> None:
    until(lambda: not active_jobs(), seconds=SECONDS_TO_STOP)
    # Each question gets its own answer, not that of the call which was broken off.
    assert [spark.range(rows).count() for rows in (5, 6, 7)] == [5, 6, 7]


@pytest.mark.parametrize("how", ["called", "submitted", "awaited"])
def test_a_task_over_its_time(
    orders: Asset, recorded: list[Recording], active_jobs: Callable[[], list[int]], spark: Any, how: str
) -> None:
    @spark_task(outlets=orders, timeout_seconds=3)
    def produce(spark: Any) -> Any:
        return for_ever(spark)

    @spark_task(outlets=orders, timeout_seconds=3)
    async def produce_later(spark: Any) -> Any:
        return for_ever(spark)

    states: list[State] = []

    @flow
    def around() -> None:
        if how == "called":
            states.append(produce(return_state=True))
        else:
            future = produce.submit()
            future.wait()
            states.append(future.state)

    @flow
    async def around_later() -> None:
        states.append(await cast("Awaitable[State]", produce_later(return_state=True)))

    if how == "awaited":
        asyncio.run(around_later())  # pyright: ignore
    else:
        around()
    assert [state.is_failed() for state in states] == [True]
    assert how == "awaited" or states[0].name == "TimedOut"
    is_gone(active_jobs, spark)
    assert recorded == []


def test_a_cancelled_flow_run(
    orders: Asset,
    recorded: list[Recording],
    active_jobs: Callable[[], list[int]],
    spark: Any,
    prefect_here: PrefectServer,
) -> None:
    runs: list[UUID] = []

    @spark_task(outlets=orders, retries=1)
    def produce(spark: Any) -> Any:
        return for_ever(spark)

    @flow
    def around() -> None:
        context = FlowRunContext.get()
        assert context is not None
        assert context.flow_run is not None
        runs.append(context.flow_run.id)
        produce.submit().wait()

    def cancel() -> None:
        until(active_jobs)
        state = {"state": {"type": "CANCELLING", "name": "Cancelling"}}
        with prefect_here.http() as http:
            http.post(f"/flow_runs/{runs[0]}/set_state", json=state).raise_for_status()

    with_cancel = Thread(target=cancel)
    with_cancel.start()
    around(return_state=True)
    with_cancel.join()
    is_gone(active_jobs, spark)
    assert recorded == []
