"""Example 13: a task finds out only when it runs which asset it updates; the alias is what its outlet says."""

import logging
from collections.abc import Generator

import pytest

from assetflow import Asset, AssetAlias, Metadata, OutletEvents, flow, task
from assetflow.testing import Harness

OUTPUTS = AssetAlias("my-task-outputs")
URI = "s3://bucket/my-task"


@task(outlets=[OUTPUTS])
def my_task_with_outlet_events(outlet_events: OutletEvents) -> None:
    outlet_events[OUTPUTS].add(Asset(URI), extra={"k": "v"})


@task(outlets=[OUTPUTS])
def my_task_with_metadata() -> Generator[Metadata]:
    yield Metadata(Asset(URI), extra={"k": "v"}, alias="my-task-outputs")


@task(outlets=[OUTPUTS])
def my_task_without_outputs() -> None: ...


@flow
async def producer() -> None:
    my_task_with_outlet_events()  # pyright: ignore[reportCallIssue]
    my_task_with_metadata()


@flow
async def producer_of_nothing() -> None:
    my_task_without_outputs()


@flow(schedule=OUTPUTS)
async def consumer() -> None: ...


@pytest.mark.rule("2.4")
@pytest.mark.prefect
def test_live(h: Harness, caplog: pytest.LogCaptureFixture) -> None:
    h.deploy(consumer)
    h.run(producer_of_nothing)
    assert h.settle().runs(consumer) == []
    with caplog.at_level(logging.WARNING, logger="assetflow.evaluator"):
        h.run(producer)
        runs = h.settle(execute=False).runs(consumer)
    events = [event for run in runs for event in run.events]
    assert [len(run.events) for run in runs] == [1, 1]
    assert [(event.uri, event.extra, event.aliases) for event in events] == [(URI, {"k": "v"}, (OUTPUTS.name,))] * 2
    told = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    message = f"{URI} is a new asset; it came through alias my-task-outputs"
    assert [each for each in told if URI in each] == [message]
