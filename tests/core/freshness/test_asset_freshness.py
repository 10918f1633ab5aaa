"""A state that cannot be judged up to now may be unknown; and what will be too old at its next deadline."""

from datetime import UTC, datetime, timedelta

import pytest

from assetflow.core.freshness.asset_freshness import AssetFreshness, Unjudged
from assetflow.core.freshness.records import PolicyRecord
from assetflow.core.values.freshness_policy import CURRENT, DataTime, FreshnessPolicy, State

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ALWAYS = FreshnessPolicy(HOUR, warn_after=HOUR / 2)
AT_NINE = FreshnessPolicy(HOUR, deadline="0 9 * * *")


@pytest.mark.parametrize(
    ("policy", "state", "data_time", "unjudged_for", "shown"),
    [
        (ALWAYS, "pass", CURRENT, HOUR / 3, "pass"),
        (ALWAYS, "pass", CURRENT, HOUR * 2 / 3, "unknown"),
        (ALWAYS, "warn", NOON - HOUR * 2 / 3, HOUR / 3, "warn"),
        (ALWAYS, "warn", NOON - 2 * HOUR, HOUR, "unknown"),
        (ALWAYS, "fail", NOON - 2 * HOUR, HOUR, "fail"),
        (AT_NINE, "pass", CURRENT, 2 * HOUR, "pass"),
        (AT_NINE, "pass", CURRENT, 5 * HOUR, "unknown"),
    ],
)
def test_8_13_the_state_is_unknown_if_it_may_have_changed(
    policy: FreshnessPolicy, state: State, data_time: DataTime | None, unjudged_for: timedelta, shown: State
) -> None:
    record = PolicyRecord(policy, NOON - 24 * HOUR, state, NOON - 6 * HOUR, data_time)
    since = NOON - unjudged_for
    found = AssetFreshness.of("s3://lake/a", record, None, Unjudged(since, "Prefect does not answer", NOON))
    assert found.record.state == shown
    if shown != state:
        words = f"unknown since {since:%Y-%m-%d %H:%M:%S} UTC: Prefect does not answer"
        assert (found.state_in_words, found.shown(NOON).why) == (words, "Prefect does not answer")
        assert found.record.state_since == since


@pytest.mark.parametrize(
    ("policy", "state", "soon"), [(AT_NINE, "pass", NOON + 21 * HOUR), (AT_NINE, "fail", None), (ALWAYS, "pass", None)]
)
def test_8_13_what_will_be_too_old_at_the_next_deadline(
    policy: FreshnessPolicy, state: State, soon: datetime | None
) -> None:
    record = PolicyRecord(policy, NOON - 24 * HOUR, state, NOON - 6 * HOUR, NOON - 2 * HOUR)
    assert AssetFreshness.of("s3://lake/a", record, None, None).too_old_at(NOON) == soon
