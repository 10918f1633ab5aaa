"""Example 19: keys start the flows that run by keys, and nobody else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from assetflow import Asset, PartitionedAssetTimetable, flow, partition_key, task
from assetflow.cli.emit import emit
from assetflow.partitions import StartOfDayMapper
from assetflow.testing import ConsumerRun, Harness
from assetflow.timetables import CronPartitionTimetable
from tests.examples.upcoming import execute, next_run

SALES = Asset("s3://shop/sales", name="sales")


@task(outlets=[SALES])
async def write_sales() -> None: ...


@flow(schedule=CronPartitionTimetable("0 * * * *", timezone="UTC", run_offset=-1))
async def hourly_sales() -> None:
    await write_sales()


@flow(schedule=PartitionedAssetTimetable(assets=SALES))
async def each_key() -> str | None:
    return partition_key()


@flow(schedule=PartitionedAssetTimetable(assets=SALES, default_partition_mapper=StartOfDayMapper()))
async def each_day() -> None: ...


@flow(schedule=[SALES])
async def plain() -> None: ...


@pytest.mark.prefect
def test_live(h: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    for consumer in (each_key, each_day, plain):
        h.deploy(consumer)
    producer = h.deploy(hourly_sales)

    h.emit(SALES)
    assert (keys(h.settle().runs(each_key)), keys(h.runs(each_day)), len(h.runs(plain))) == ([], [], 1)

    h.emit(SALES, partition_key="2026-01-01T05:00:00")
    emit(SALES.uri, key="2026-01-02T06:00:00")
    capsys.readouterr()
    upcoming = next_run(producer)
    assert upcoming.expected_start_time is not None
    hour = f"{upcoming.expected_start_time.astimezone(UTC) - timedelta(hours=1):%Y-%m-%dT%H:%M:%S}"
    execute(hourly_sales, upcoming)
    expected = ["2026-01-01T05:00:00", "2026-01-02T06:00:00", hour]

    assert keys(h.settle().runs(each_key)) == expected
    assert keys(h.runs(each_day)) == [datetime.fromisoformat(key).strftime("%Y-%m-%d") for key in expected]
    assert {run.state for run in [*h.runs(each_key), *h.runs(each_day)]} == {"Completed"}
    assert len(h.runs(plain)) == 1


def keys(runs: list[ConsumerRun]) -> list[str | None]:
    return [run.partition_key for run in runs]
