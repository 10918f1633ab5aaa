"""Example 10: a task reads the past updates of its inlets, those of its own flow run included."""

from collections.abc import Generator

import pytest

from assetflow import Asset, InletEvents, Metadata, flow, task
from assetflow.testing import Harness

FILE = Asset("s3://my-bucket/processed.csv")
OTHER = Asset("s3://my-bucket/other.csv")


@task(outlets=[FILE])
def write_to_s3(row_count: int) -> Generator[Metadata]:
    yield Metadata(FILE, {"row_count": row_count})


@task(inlets=[FILE])
def post_process_s3_file(inlet_events: InletEvents) -> object:
    with pytest.raises(KeyError, match=r"other\.csv"):
        inlet_events[OTHER]  # assetflow: ignore=AF009
    return inlet_events[FILE][-1].extra["row_count"]


@task(inlets=[FILE])
def compare_the_last_two(inlet_events: InletEvents) -> list[object]:
    return [event.extra["row_count"] for event in inlet_events[FILE][-2:]]


@flow
async def write_and_post_process() -> object:
    write_to_s3(3)
    return post_process_s3_file()  # pyright: ignore[reportCallIssue]


@flow
async def compare() -> list[object]:
    return compare_the_last_two()  # pyright: ignore[reportCallIssue]


@pytest.mark.rule("7.2")
@pytest.mark.prefect
def test_live(h: Harness) -> None:
    for row_count in (1, 2, 3):
        h.emit(FILE, extra={"row_count": row_count})
    assert h.run(write_and_post_process) == 3
    h.settle()

    assert h.run(compare) == [3, 3]
