"""Example 18: every midnight, and on every update; neither gets in the way of the other."""

import pytest

from tests.examples.simulated import answer

SCHEDULE = {"cron": "0 0 * * *", "timezone": "UTC", "assets": {"any": ["asset3", "asset4"]}}


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
