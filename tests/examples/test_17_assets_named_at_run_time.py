"""Example 17: an alias brings assets that are named at run time, and their own later updates count for it too."""

import pytest

from tests.examples.simulated import runs, task

UPDATED = {"alias": "my-updated-buckets"}


@pytest.mark.rule("3.2")
def test_later_updates_of_an_asset_that_came_through_an_alias_count_for_it() -> None:
    steps = [
        step
        for bucket in ("updated_a", "updated_b")
        for step in ({"task": {"outlets": [UPDATED], "emit": [UPDATED | {"asset": bucket}]}}, task(bucket))
    ]
    found = runs({"consumer": UPDATED}, steps)
    assert found == {"consumer": [["updated_a"], ["updated_a"], ["updated_b"], ["updated_b"]]}
