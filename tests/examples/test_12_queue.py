"""Example 12: what waits in a queue, and what happens when somebody takes it out."""

import pytest

from tests.examples.simulated import answer, updates


@pytest.mark.rule("3.7")
def test_what_is_taken_out_in_between_starts_nothing() -> None:
    consumers = {"waiting_for_asset_1_and_2": ["asset-1", "asset-2"]}
    removed = {"delete_queued": {"consumer": "waiting_for_asset_1_and_2", "asset": "asset-1"}}
    assert [run["step"] for run in answer(consumers, updates("asset-1", "asset-2"))["runs"]] == [1]
    found = answer(consumers, [*updates("asset-1"), removed, *updates("asset-2")])
    assert found["runs"] == []
    assert [event["asset"] for event in found["queued"]["waiting_for_asset_1_and_2"]] == ["asset-2"]
