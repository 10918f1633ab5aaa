"""Example 7: three assets in a list wait for all three, and each run consumes everything that came meanwhile."""

import pytest

from tests.examples.simulated import answer, updates

ORDER = ["1", "1", "2", "1", "2", "1", "3", "2", "3", "2", "3", "2", "1"]


@pytest.mark.rule("4.2")
def test_two_runs_with_seven_and_six_events() -> None:
    found = answer({"consumer": ["1", "2", "3"]}, updates(*ORDER))
    assert [run["step"] for run in found["runs"]] == [6, 12]
    assert [[event["asset"] for event in run["events"]] for run in found["runs"]] == [ORDER[:7], ORDER[7:]]
    assert found["queued"] == {}
