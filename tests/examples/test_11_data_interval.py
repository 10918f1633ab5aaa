"""Example 11: a consumer asks its warehouse for the hour that the run behind the triggering event was for."""

from datetime import datetime, timedelta

import pytest

from assetflow import Asset, TriggeringAssetEvents, flow, task
from assetflow.testing import Harness
from assetflow.timetables import CronTriggerTimetable
from tests.examples.upcoming import execute, next_run

TABLE = Asset("postgres://warehouse/shop/public/orders")

queries: list[tuple[datetime | None, datetime | None]] = []
printed: list[str] = []


@task(outlets=[TABLE])
def load_orders() -> None: ...


@flow(schedule=CronTriggerTimetable("@hourly"))
async def load() -> None:
    load_orders()


@flow(schedule=TABLE)
async def summarize(triggering_asset_events: TriggeringAssetEvents) -> None:
    for events in triggering_asset_events.values():
        for event in events:
            source = event.source_flow_run
            assert source is not None
            queries.append((source.data_interval_start, source.data_interval_end))
            printed.append(source.flow_name)


@pytest.mark.rule("7.3")
@pytest.mark.prefect
def test_live(h: Harness) -> None:
    name = h.deploy(load)
    h.deploy(summarize)
    queries.clear()
    printed.clear()

    hourly = next_run(name)
    execute(load, hourly)

    (run,) = h.settle().runs(summarize)
    assert run.state == "Completed"
    assert printed == ["load"]
    # The run of 14:00 is for the time from 13:00 to 14:00, and so on.
    (end,) = {end for _, end in queries}
    assert end is not None
    assert (end.minute, end.second) == (0, 0)
    assert end == hourly.expected_start_time
    assert queries == [(end - timedelta(hours=1), end)]
