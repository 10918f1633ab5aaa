"""Example 19: keys start the flows that run by keys, and nobody else."""

from typing import Any

from tests.examples.simulated import answer

SALES = "s3://shop/sales"
BY_KEY = {"partitioned": {"assets": SALES}}
BY_DAY = {"partitioned": {"assets": SALES, "default_mapper": "day"}}


def test_keys_start_the_flows_that_run_by_keys() -> None:
    consumers: dict[str, Any] = {"each_key": BY_KEY, "each_day": BY_DAY, "plain": [SALES]}
    found = answer(consumers, [{"event": SALES}, {"event": SALES, "partition_key": "2026-01-01T05:00:00"}])["runs"]
    assert [(run["consumer"], run.get("partition_key")) for run in found] == [
        ("plain", None),
        ("each_day", "2026-01-01"),
        ("each_key", "2026-01-01T05:00:00"),
    ]
