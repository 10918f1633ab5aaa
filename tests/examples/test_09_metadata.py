"""Example 9: what a task tells about its update is the event's extra, exactly; of several attempts the last one's."""

from collections.abc import Generator

import pytest
from prefect.runtime import task_run

from assetflow import Asset, Metadata, OutletEvents, flow, task
from assetflow.testing import Harness

FILE = Asset("s3://my-bucket/metadata.csv")
ROWS = ["a", "b", "c"]


@task(outlets=[FILE], name="write_to_s3")
def write_to_s3_and_yield() -> Generator[Metadata]:
    yield Metadata(FILE, {"row_count": len(ROWS)})


@task(outlets=[FILE], name="write_to_s3")
def write_to_s3_and_assign(outlet_events: OutletEvents) -> None:
    outlet_events[FILE].extra = {"row_count": len(ROWS)}


@task(outlets=[FILE], name="write_to_s3", retries=1)
def write_to_s3_at_the_second_attempt(outlet_events: OutletEvents) -> Generator[Metadata]:
    outlet_events[FILE].extra[f"attempt_{task_run.run_count}"] = True
    if task_run.run_count == 1:
        raise ValueError("once more")
    yield Metadata(FILE, {"row_count": len(ROWS)})


@flow
async def producer() -> None:
    write_to_s3_and_yield()
    write_to_s3_and_assign()  # pyright: ignore[reportCallIssue]
    write_to_s3_at_the_second_attempt()  # pyright: ignore[reportCallIssue]


@flow(schedule=FILE)
async def consumer() -> None: ...


@pytest.mark.rule("2.3")
@pytest.mark.prefect
def test_live(h: Harness) -> None:
    h.deploy(consumer)
    h.run(producer)
    runs = h.settle(execute=False).runs(consumer)
    assert [[event.extra for event in run.events] for run in runs] == [
        [{"row_count": 3}],
        [{"row_count": 3}],
        [{"attempt_2": True, "row_count": 3}],
    ]
