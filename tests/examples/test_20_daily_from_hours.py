"""Example 20: a day is made when its 24 hours are there."""

from __future__ import annotations

import pytest

from assetflow import Asset, PartitionedAssetTimetable, flow, task
from assetflow.partitions import DayWindow, RollupMapper, StartOfDayMapper
from assetflow.testing import Harness

HOURLY, DAILY = Asset("s3://shop/hourly"), Asset("s3://shop/daily")
HOURS = [f"2026-01-01T{hour:02}:00:00" for hour in range(24)]


@task(outlets=[DAILY])
async def sum_up() -> None: ...


@flow(
    schedule=PartitionedAssetTimetable(
        assets=HOURLY, default_partition_mapper=RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow())
    )
)
async def daily() -> None:
    await sum_up()


@flow(schedule=PartitionedAssetTimetable(assets=DAILY))
async def read_daily() -> None: ...


@pytest.mark.prefect
def test_live(h: Harness) -> None:
    h.deploy(daily)
    h.deploy(read_daily)
    for hour in HOURS[:23]:
        h.emit(HOURLY, partition_key=hour)
    assert h.settle().runs(daily) == []
    h.emit(HOURLY, partition_key=HOURS[23])
    (run,) = h.settle().runs(daily)
    assert (run.partition_key, len(run.events), run.state) == ("2026-01-01", 24, "Completed")
    (read,) = h.runs(read_daily)
    assert (read.partition_key, read.uris) == ("2026-01-01", [DAILY.uri])
