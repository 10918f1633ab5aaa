"""Example 20: a day is made when its 24 hours are there."""

from typing import Any

from tests.examples.simulated import answer

HOURLY = "s3://shop/hourly"


def test_a_day_waits_for_its_hours() -> None:
    rollup: dict[str, Any] = {"rollup": {"upstream": "day", "window": "day"}}
    consumers = {"daily": {"partitioned": {"assets": HOURLY, "default_mapper": rollup}}}
    steps = [{"event": HOURLY, "partition_key": f"2026-01-01T{hour:02}:00:00"} for hour in range(24)]
    assert answer(consumers, steps[:23])["runs"] == []
    (run,) = answer(consumers, steps)["runs"]
    assert (run["step"], run["partition_key"], len(run["events"])) == (23, "2026-01-01", 24)
