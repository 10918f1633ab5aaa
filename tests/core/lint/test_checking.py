"""What a lint finds: conditions that follow from others, and mappers that share no target key. Contract 11.2."""

from datetime import timedelta
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assetflow.core.lint import implies, may_meet, useless_branches
from assetflow.core.partitions import (
    AllowedKeyMapper,
    FixedKeyMapper,
    IdentityMapper,
    PartitionMapper,
    StartOfDayMapper,
    StartOfHourMapper,
    StartOfMonthMapper,
    StaticMapper,
)
from assetflow.core.rules.evaluation import evaluate
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import AssetAll, AssetAny, AtLeast, Condition, Token
from assetflow.core.values.schedules import Schedule

A, B, C = Asset("a"), Asset("b"), Asset("c")
HOUR = timedelta(hours=1)
LEAVES = st.sampled_from([A, B, C])
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda members: st.sampled_from([AssetAll(*members), AssetAny(*members), AtLeast(1, *members)])
    ),
    max_leaves=6,
)
UPDATED = list(chain.from_iterable(combinations("abc", size) for size in range(1, 4)))


def holds(condition: Condition, updated: tuple[str, ...]) -> bool:
    pending: dict[str, dict[str | None, int]] = {uri: {None: 1} for uri in updated}
    return evaluate(Schedule(condition), None, pending, lambda uri: frozenset((Token("uri", uri),)))


@pytest.mark.rule("11.2")
@given(CONDITIONS, CONDITIONS)
def test_what_follows_holds_whenever_the_other_one_does(one: Condition, other: Condition) -> None:
    if implies(one, other):
        assert [updated for updated in UPDATED if holds(one, updated) and not holds(other, updated)] == []


@pytest.mark.rule("11.2")
@pytest.mark.parametrize(
    ("condition", "useless"),
    [
        (A | (A & B), ["a AND b"]),
        (AssetAny(A, A), ["a"]),
        ((A & B) | (B & A), ["b AND a"]),
        ((A & B).within(HOUR) | (A & B).within(2 * HOUR), ["(a AND b) within 1 h of each other"]),
        (A.times(3) | A.times(2), ["a 3 times"]),
        (AtLeast(2, A, B, C) | (A & B), ["a AND b"]),
        (C & (A | (A & B)), ["a AND b"]),
        (A | (B & C), []),
        ((A & B).within(HOUR) | (A & C), []),
    ],
)
def test_the_useless_branches_of_an_or(condition: Condition, useless: list[str]) -> None:
    assert [branch.describe() for branch, _ in useless_branches(condition)] == useless


DAYS = StartOfDayMapper()


@pytest.mark.rule("11.2")
@pytest.mark.parametrize(
    ("other", "meets"),
    [
        (StartOfDayMapper(input_format="%Y%m%d"), True),
        (StartOfMonthMapper(output_format="%Y-%m-%d"), True),
        (IdentityMapper(), True),
        (FixedKeyMapper("2026-03-01"), True),
        (AllowedKeyMapper(["eu", "2026-03-01"]), True),
        (StartOfHourMapper(), False),
        (StartOfMonthMapper(), False),
        (FixedKeyMapper("all"), False),
        (StaticMapper({"de": "eu"}), False),
    ],
    ids=lambda value: value.describe() if isinstance(value, PartitionMapper) else "",
)
def test_mappers_meet_unless_neither_can_read_the_others_keys(other: PartitionMapper, meets: bool) -> None:
    assert (may_meet(DAYS, other), may_meet(other, DAYS)) == (meets, meets)
