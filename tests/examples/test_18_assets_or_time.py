"""Example 18: every midnight, and on every update; neither gets in the way of the other."""

from datetime import UTC, time

import pytest

from assetflow import Asset, AssetOrTimeSchedule, TriggeringAssetEvents, flow
from assetflow.testing import Harness
from tests.examples.simulated import answer
from tests.examples.upcoming import execute, next_run

ASSET_3, ASSET_4 = Asset("asset3"), Asset("asset4")
SCHEDULE = {"cron": "0 0 * * *", "timezone": "UTC", "assets": {"any": ["asset3", "asset4"]}}


consumed: list[int] = []


@flow(schedule=AssetOrTimeSchedule(timetable="0 0 * * *", assets=(ASSET_3 & ASSET_4)))
async def toy_both_or_time(triggering_asset_events: TriggeringAssetEvents) -> None:
    consumed.append(len(triggering_asset_events.all()))


@pytest.mark.rule("6.1")
def test_a_run_at_midnight_and_one_for_each_update() -> None:
    steps = [
        {"event": "asset3", "at": "2026-01-01T10:00:00Z"},
        {"advance": 0, "at": "2026-01-02T00:00:00Z"},
        {"event": "asset4", "at": "2026-01-02T10:00:00Z"},
    ]
    found = answer({"toy": {"asset_or_time": SCHEDULE}}, steps, start="2026-01-01T08:00:00Z")
    assert [(run.get("time"), [event["asset"] for event in run["events"]]) for run in found["runs"]] == [
        (None, ["asset3"]),
        ("2026-01-02T00:00:00Z", []),
        (None, ["asset4"]),
    ]


@pytest.mark.rule("4.5")
@pytest.mark.prefect
def test_live_midnight_leaves_the_queue_as_it_is(h: Harness) -> None:
    name = h.deploy(toy_both_or_time)
    h.emit(ASSET_3)
    midnight = next_run(name)
    assert midnight.expected_start_time is not None
    assert midnight.expected_start_time.astimezone(UTC).time() == time(0)
    execute(toy_both_or_time, midnight)
    assert consumed == [0]
    assert h.settle().runs(toy_both_or_time) == []
    assert [event.uri for event in h.queued(toy_both_or_time)] == ["asset3"]
