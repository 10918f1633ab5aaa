"""Example 14: the same asset with the same extra through two aliases is one event; with another extra it is another."""

import pytest

from tests.examples.simulated import answer

URI = "s3://bucket/my-task"
TASK = {
    "task": {
        "outlets": [{"alias": "first"}, {"alias": "second"}, {"alias": "third"}],
        "emit": [
            {"alias": "first", "asset": URI, "extra": {"k": "v"}},
            {"alias": "second", "asset": URI, "extra": {"k": "v"}},
            {"alias": "third", "asset": URI, "extra": {"k2": "v2"}},
        ],
    }
}
CONSUMERS = {"of the asset": URI, "of the first": {"alias": "first"}, "of the third": {"alias": "third"}}


@pytest.mark.rule("2.4")
def test_two_events_and_whom_they_reach() -> None:
    found = answer(CONSUMERS, [TASK], receipts=True)
    runs = {run["consumer"]: [event["extra"] for event in run["events"]] for run in found["runs"]}
    assert len(found["runs"]) == 3
    assert runs == {
        "of the asset": [{"k": "v"}, {"k2": "v2"}],
        "of the first": [{"k": "v"}, {"k2": "v2"}],
        "of the third": [{"k2": "v2"}],
    }
    assert {receipt["event"] for receipt in found["receipts"]} == {1, 2}
