"""Rule 3.7: a pending partition is removed only by naming its consumer and key."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.rules.registry import NamedEvents, check_removal
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.errors import InvalidCall
from tests.core.world import NOW, A, B, event


def consumer(schedule: object) -> Consumer:
    return Consumer(1, "report/shop", UUID(int=1), ConsumerOptions(to_schedule(schedule)))


PLAIN = consumer(Asset("s3://lake/orders"))
DAILY = consumer(PartitionedAssetTimetable(assets=Asset("s3://lake/orders")))


@pytest.mark.parametrize(("of", "key", "narrowed"), [(None, None, True), (PLAIN, None, False), (DAILY, "a", False)])
def test_rule_3_7_what_names_enough_is_removed(of: Consumer | None, key: str | None, narrowed: bool) -> None:
    check_removal(of, key, narrowed=narrowed)


@pytest.mark.parametrize(
    ("of", "key", "narrowed", "where"),
    [
        (None, None, False, "consumer"),
        (None, "a", True, "consumer"),
        (DAILY, None, True, "key"),
        (DAILY, "", False, "key"),
        (PLAIN, "a", False, "key"),
    ],
)
def test_rule_3_7_what_names_too_little_or_too_much_is_refused(
    of: Consumer | None, key: str | None, narrowed: bool, where: str
) -> None:
    with pytest.raises(InvalidCall) as refused:
        check_removal(of, key, narrowed=narrowed)
    assert (refused.value.where, refused.value.rule) == (where, "3.7")


def test_the_keys_that_may_be_meant_are_named() -> None:
    with pytest.raises(InvalidCall, match="pending partitions: 2026-01-01, 2026-01-02"):
        check_removal(DAILY, None, narrowed=False, pending_keys=lambda: ["2026-01-01", "2026-01-02"])


def test_rule_3_7_the_events_that_are_named() -> None:
    earlier, later = (event(A, recorded=NOW + timedelta(minutes=minutes)) for minutes in (0, 1))
    of_other = event(B, recorded=NOW)
    events = [earlier, later, of_other]

    def named(**given: Any) -> list[AssetEvent]:
        return [each for each in events if NamedEvents(**given).has(each)]

    assert named() == events
    assert named(uri=A.uri) == [earlier, later]
    assert named(event_id=later.id) == [later]
    assert named(before=NOW + timedelta(minutes=1)) == [earlier, of_other]
    assert named(uri=B.uri, event_id=later.id) == []
