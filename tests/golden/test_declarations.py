"""What a deployment stores of a flow (`x-assetflow`), for each kind of schedule, option, mapper and trigger."""

import json
from datetime import timedelta
from typing import Any

import pytest

from assetflow import (
    Asset,
    AssetAlias,
    AssetAndTimeSchedule,
    AssetOrTimeSchedule,
    AssetWatcher,
    AtLeast,
    Eager,
    FreshnessPolicy,
    Lazy,
    OnMissing,
    PartitionedAssetTimetable,
    flow,
    task,
)
from assetflow.core.wire import FlowDeclaration, declaration_from_text, declaration_to_text
from assetflow.partitions import (
    AllowedKeyMapper,
    ChainMapper,
    DayWindow,
    FixedKeyMapper,
    IdentityMapper,
    MinimumCount,
    RollupMapper,
    StartOfDayMapper,
)
from assetflow.timetables import (
    CronPartitionTimetable,
    CronTriggerTimetable,
    DeltaTriggerTimetable,
    PartitionedAtRuntime,
    RRuleTimetable,
)
from assetflow.watchers import FileTrigger, MessageQueueTrigger, WebhookTrigger
from tests.golden import agrees

HOUR = timedelta(hours=1)
A, B = Asset("s3://lake/a", name="a", group="lake", extra={"owner": "ann"}), Asset("s3://lake/b")
MADE = Asset("s3://lake/made", freshness=FreshnessPolicy(6 * HOUR, warn_after=4 * HOUR))

SCHEDULES: dict[str, dict[str, Any]] = {
    "none": {},
    "asset": {"schedule": A},
    "references": {"schedule": Asset.ref(name="a") & Asset.ref(uri="s3://lake/b")},
    "condition": {"schedule": A & (B | AssetAlias("late"))},
    "quorum": {"schedule": AtLeast(2, A, B, AssetAlias("late"))},
    "times_within": {"schedule": (A.times(3) & B).within(HOUR)},
    "asset_or_time": {"schedule": AssetOrTimeSchedule(timetable="0 0 * * *", assets=A)},
    "opening_hours": {
        "schedule": AssetAndTimeSchedule(timetable="0 6 * * *", assets=A, until="0 22 * * *"),
        "deadline": "0 8 * * *",
        "on_deadline": "run",
    },
    "cron": {"schedule": CronTriggerTimetable("0 6 * * *", timezone="Europe/Berlin")},
    "every": {"schedule": DeltaTriggerTimetable(HOUR)},
    "rrule": {"schedule": RRuleTimetable("DTSTART:20260101T060000Z\nRRULE:FREQ=DAILY")},
    "keys_by_time": {"schedule": CronPartitionTimetable("0 0 * * *", timezone="Europe/Berlin")},
    "keys_at_runtime": {"schedule": PartitionedAtRuntime()},
    "partitioned": {
        "schedule": PartitionedAssetTimetable(
            assets=A & B,
            default_partition_mapper=StartOfDayMapper(),
            partition_mapper_config={
                A: RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow(), wait_policy=MinimumCount(3)),
                B: ChainMapper(IdentityMapper(), AllowedKeyMapper(["x", "y"]), FixedKeyMapper("x")),
            },
        )
    },
    "timing": {"schedule": A, "debounce": HOUR, "max_wait": 2 * HOUR, "min_events": 2, "cooldown": HOUR},
    "options": {"schedule": A, "while_paused": "keep", "coalesce": True},
    "eager": {"schedule": Eager(catchup="all", retries=2, retry_delay=HOUR, expected_duration=HOUR)},
    "eager_by_key": {"schedule": Eager(lookback=7, default_partition_mapper=StartOfDayMapper())},
    "on_missing": {"schedule": OnMissing()},
    "lazy": {"schedule": Lazy()},
    "watched": {
        "schedule": Asset(
            "s3://lake/watched",
            watchers=[
                AssetWatcher("drops", FileTrigger("s3://drops/*.csv")),
                AssetWatcher("queue", MessageQueueTrigger("redis://broker:6379/0", stream="orders")),
                AssetWatcher("hook", WebhookTrigger("${SECRET}")),
            ],
        )
    },
}


@task(outlets=[MADE], inlets=[A, B], code_version="7")
def make() -> None: ...


def declared(name: str) -> FlowDeclaration:
    @flow(**SCHEDULES[name])
    def report() -> None:
        make()

    return report.declaration


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_declaration_of_each_kind_of_schedule(name: str) -> None:
    text = declaration_to_text(declared(name))
    agrees(f"declarations/{name}", json.loads(text))
    assert declaration_to_text(declaration_from_text(text)) == text
