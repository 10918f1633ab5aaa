"""Example 6: a task that fails or skips updates nothing; one that completes does, whatever becomes of its flow."""

import pytest

from tests.examples.simulated import runs

REPORT = "s3://my-bucket/report.csv"


@pytest.mark.parametrize(("state", "expected"), [("failed", 0), ("skipped", 0), ("completed", 1)])
def test_only_a_task_that_completes_updates(state: str, expected: int) -> None:
    found = runs({"consumer": REPORT}, [{"task": {"outlets": [REPORT], "state": state}}])
    assert len(found["consumer"]) == expected
