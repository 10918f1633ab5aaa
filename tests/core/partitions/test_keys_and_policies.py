from __future__ import annotations

import pytest

from assetflow.core.partitions import MinimumCount, WaitForAll, check_key
from assetflow.core.partitions.rollup import policy_from_json
from assetflow.errors import InvalidEvent, InvalidPartition


def test_keys() -> None:
    for key in ("us", " us ", "é", "a" * 250, "日" * 191):
        assert check_key(key) == key
    for key in ("", " \t", "a" * 251, "日" * 192, 5, None):
        with pytest.raises(InvalidEvent) as caught:
            check_key(key)
        assert caught.value.rule == "2.5"


@pytest.mark.parametrize(
    ("policy", "received", "awaited", "met"),
    [
        (WaitForAll(), 23, 24, False),
        (WaitForAll(), 24, 24, True),
        (MinimumCount(2), 1, 24, False),
        (MinimumCount(2), 2, 24, True),
        (MinimumCount(5), 3, 3, False),
        (MinimumCount(-3), 20, 24, False),
        (MinimumCount(-3), 21, 24, True),
        (MinimumCount(-30), 0, 24, True),
    ],
)
def test_policies(policy: WaitForAll | MinimumCount, received: int, awaited: int, met: bool) -> None:
    assert policy.is_met(received, awaited) is met
    assert policy_from_json(policy.as_json()) == policy


@pytest.mark.parametrize("n", [0, True, 1.5, "2"])
def test_counts_that_say_nothing(n: int) -> None:
    with pytest.raises(InvalidPartition):
        MinimumCount(n)


@pytest.mark.parametrize("value", ["some", {"max": 1}, {}, None, {"min": 0}])
def test_json_that_is_no_policy(value: object) -> None:
    with pytest.raises(InvalidPartition):
        policy_from_json(value)
