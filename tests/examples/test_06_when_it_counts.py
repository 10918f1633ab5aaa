"""Example 6: a task that fails or skips updates nothing; one that completes does, whatever becomes of its flow."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from assetflow import Asset, Skip, flow, task
from assetflow.testing import Harness

REPORT = Asset("s3://my-bucket/report.csv")


@task(outlets=[REPORT])
def fails() -> None:
    raise ValueError("the task fails")


@task(outlets=[REPORT])
def skips() -> None:
    raise Skip("nothing new")


@task(outlets=[REPORT])
def completes() -> None: ...


@flow
async def producer_whose_task_fails() -> None:
    fails()


@flow
async def producer_whose_task_skips() -> None:
    skips()


@flow
async def producer() -> None:
    completes()


@flow
async def producer_that_fails_afterwards() -> None:
    completes()
    raise ValueError("the flow fails")


@flow(schedule=REPORT)
async def consumer() -> None: ...


@pytest.mark.prefect
def test_live(h: Harness) -> None:
    h.deploy(consumer)

    def runs_after(act: Callable[[], object]) -> int:
        before = len(h.runs(consumer))
        act()
        return len(h.settle(execute=False).runs(consumer)) - before

    def failing(message: str, failing_producer: Callable[[], object]) -> None:
        with pytest.raises(ValueError, match=message):
            failing_producer()

    assert runs_after(lambda: failing("the task fails", lambda: h.run(producer_whose_task_fails))) == 0
    assert runs_after(lambda: h.run(producer_whose_task_skips)) == 0
    assert runs_after(lambda: h.run(producer)) == 1
    assert runs_after(lambda: failing("the flow fails", lambda: h.run(producer_that_fails_afterwards))) == 1
