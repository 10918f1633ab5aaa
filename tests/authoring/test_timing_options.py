"""The options about time and amounts: what `@flow` and `@asset` make of them, and what they refuse (9.16)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from assetflow import Asset, AssetAndTimeSchedule, AssetOrTimeSchedule, AtLeast, PartitionedAssetTimetable, asset, flow
from assetflow.core.values.conditions import AssetAll, Since, Times, Within
from assetflow.core.values.timing import Deadline, Intake
from assetflow.errors import AssetflowError, InvalidSchedule, InvalidTimetable
from assetflow.partitions import DayWindow, RollupMapper, StartOfDayMapper
from assetflow.timetables import (
    AssetTriggeredTimetable,
    CronPartitionTimetable,
    CronTriggerTimetable,
    PartitionedAtRuntime,
)

A, B, C = Asset("a"), Asset("b"), Asset("c")
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
SIX = CronTriggerTimetable("0 6 * * *", timezone="Europe/Berlin")
DAILY_KEYS = CronPartitionTimetable("0 6 * * *")
MORNINGS = AssetAndTimeSchedule(timetable=SIX, assets=A & B, until="0 22 * * *")
KEYED = PartitionedAssetTimetable(assets=A & B)


def report() -> None: ...


@pytest.mark.parametrize(
    ("given", "intake", "deadline"),
    [
        ({}, Intake(), None),
        ({"debounce": MINUTE, "max_wait": HOUR}, Intake(debounce=MINUTE, max_wait=HOUR), None),
        ({"min_events": 2, "max_events": 3, "cooldown": HOUR}, Intake(None, None, 2, 3, HOUR), None),
        ({"deadline": HOUR}, Intake(), Deadline(HOUR)),
        ({"deadline": HOUR, "on_deadline": "skip"}, Intake(), Deadline(HOUR, then="skip")),
    ],
)
def test_a_flow_keeps_them(given: Any, intake: Intake, deadline: Deadline | None) -> None:
    options = flow(schedule=A, **given)(report).declaration.options
    assert (options.intake, options.deadline) == (intake, deadline)
    for made in (asset(schedule=A, **given)(report), asset.multi(outlets=[B, C], schedule=A, **given)(report)):
        assert replace(made.declaration.options, data=options.data) == options


@pytest.mark.rule("9.10")
@pytest.mark.parametrize("batch", [True, None])
def test_batch_asset_events_is_max_events_if_it_is_false(batch: bool | None) -> None:
    def schedules(batch: bool | None) -> list[Any]:
        keyed = PartitionedAssetTimetable(assets=A, batch_asset_events=batch)
        return [
            AssetTriggeredTimetable([A], batch_asset_events=batch),
            AssetOrTimeSchedule(timetable="@daily", assets=A | B, batch_asset_events=batch),
            keyed,
            AssetAndTimeSchedule(timetable="@daily", assets=keyed),
        ]

    for given, as_today in zip(schedules(False), schedules(batch), strict=True):
        assert flow(schedule=given)(report).declaration == flow(schedule=as_today, max_events=1)(report).declaration
        assert flow(schedule=as_today)(report).declaration.options.intake == Intake()
        assert flow(schedule=given)(report).with_options(schedule=A & B).declaration.options.intake == Intake()


@pytest.mark.rule("9.2")
def test_an_asset_that_a_flow_makes_has_what_other_conditions_have() -> None:
    made = asset(report)
    asset_of = made.asset
    assert made.times(3) == Times(asset_of, 3)
    both = asset.multi(outlets=[A, B])(report)
    assert both.within(HOUR) == Within(A & B, HOUR)
    assert both.since("@daily", timezone="Europe/Berlin") == Since(
        A & B, CronTriggerTimetable("@daily", "Europe/Berlin")
    )
    assert AtLeast(1, made, B) == AtLeast(1, asset_of, B)
    with pytest.raises(InvalidSchedule, match=r"times\(\) counts the updates of one asset"):
        both.times(2)


def refused(**options: Any) -> Callable[[], object]:
    return lambda: flow(**options)(report)


def opening(**options: Any) -> Callable[[], object]:
    return lambda: flow(schedule=AssetAndTimeSchedule(**{"timetable": "@daily", "assets": A, **options}))(report)


any_asset: Any = A & B
ROLLUP = RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow())
REFUSED: list[tuple[Callable[[], object], str]] = [
    # a span that is not above zero, or over 366 days
    *((refused(schedule=A, **{name: timedelta()}), f"{name} has to be longer") for name in ("cooldown", "debounce")),
    (refused(schedule=A, min_events=1, max_wait=-HOUR), "max_wait has to be longer"),
    (refused(schedule=A, deadline=timedelta()), "deadline has to be longer"),
    (refused(schedule=A, cooldown=timedelta(days=367)), "cooldown is longer than 366 days"),
    (refused(schedule=A, cooldown=5), "cooldown is 5, not a timedelta"),
    (refused(schedule=A, deadline=5), "deadline is 5, not a timedelta"),
    (lambda: (A & B).within(timedelta()), "within has to be longer"),
    (lambda: (A & B).within(timedelta(days=367)), "within is longer than 366 days"),
    # n below 1
    *((refused(schedule=A, **{name: 0}), f"{name} has to be a whole number") for name in ("min_events", "max_events")),
    (refused(schedule=A, max_events=True), "max_events has to be a whole number"),
    (lambda: A.times(0), "times has to be a whole number"),
    (lambda: AtLeast(0, A), "AtLeast has to be a whole number"),
    (lambda: AtLeast(3, A, B), "has 2 members"),
    # `times` on a combination
    (lambda: any_asset.times(2), "one asset, reference or alias, not of a AND b"),
    # a time gate without effect
    (refused(schedule=A.within(HOUR)), "within has no effect on a: a single update"),
    (refused(schedule=(A | B).since("@daily")), "since has no effect on a OR b: a single update"),
    (refused(schedule=[A, (B & B).within(HOUR)]), "within has no effect on b AND b: a single update"),
    (refused(schedule=AssetAll().within(HOUR) & A), "within has no effect on always"),
    # options without a schedule on assets
    (refused(cooldown=HOUR), "need a schedule on assets"),
    (refused(schedule="@daily", debounce=HOUR), "need a schedule on assets"),
    (refused(schedule="@daily", deadline=HOUR), "need a schedule on assets"),
    # max_wait with neither debounce nor min_events, or below debounce
    (refused(schedule=A, max_wait=HOUR), "max_wait limits nothing"),
    (refused(schedule=A, max_wait=MINUTE, debounce=HOUR), "max_wait is shorter than debounce"),
    (refused(schedule=A, min_events=3, max_events=2), "min_events 3 is more than max_events 2"),
    # max_events where one update is not enough
    (refused(schedule=A & B, max_events=1), "max_events splits the queue, but a AND b takes several updates"),
    (refused(schedule=A & A, max_events=2), "a AND a takes several updates together"),
    (refused(schedule=C | (A & A), max_events=2), "takes several updates together"),
    (refused(schedule=A.times(2), max_events=2), "a 2 times takes several updates together"),
    (
        refused(schedule=PartitionedAssetTimetable(assets=A, default_partition_mapper=ROLLUP), max_events=1),
        "a takes several updates together",
    ),
    # the same, in Airflow's words
    (
        refused(schedule=AssetTriggeredTimetable(A & B, batch_asset_events=False)),
        "batch_asset_events=False splits the queue, but a AND b takes several updates together",
    ),
    (
        refused(schedule=AssetOrTimeSchedule(timetable="@daily", assets=[A, A], batch_asset_events=False)),
        "batch_asset_events=False splits",
    ),
    (
        refused(
            schedule=PartitionedAssetTimetable(assets=A, default_partition_mapper=ROLLUP, batch_asset_events=False)
        ),
        "batch_asset_events=False splits",
    ),
    (
        refused(schedule=AssetTriggeredTimetable(A, batch_asset_events=False), max_events=3),
        "batch_asset_events=False is max_events=1, and max_events is 3",
    ),
    # on_deadline without deadline, or unknown
    (refused(schedule=A, on_deadline="run"), "on_deadline needs a deadline"),
    (refused(schedule=A, deadline=HOUR, on_deadline="stop"), "on_deadline is 'stop'"),
    # a deadline at a time of day without opening hours, or with partitions
    (refused(schedule=A, deadline="0 8 * * *"), "a deadline at a time of day needs"),
    (
        refused(schedule=AssetAndTimeSchedule(timetable="@daily", assets=KEYED), deadline="0 8 * * *"),
        "a deadline at a time of day needs",
    ),
    (opening(until="@daily"), "until has the times of the timetable"),
    # types
    (opening(timetable=5), "a timetable"),
    (opening(until=[A]), "a timetable"),
    # a timetable without times
    (opening(timetable=PartitionedAtRuntime()), "timetable is PartitionedAtRuntime(), which has no times"),
    (opening(until=PartitionedAtRuntime()), "until is PartitionedAtRuntime()"),
    (refused(schedule=MORNINGS, deadline=PartitionedAtRuntime()), "deadline is PartitionedAtRuntime()"),
    (refused(schedule=(A & B).since(PartitionedAtRuntime())), "since is PartitionedAtRuntime()"),
    # a timetable whose key would be lost
    (opening(timetable=DAILY_KEYS), "timetable is CronPartitionTimetable(), whose key would be lost"),
    (opening(until=DAILY_KEYS), "until is CronPartitionTimetable()"),
    (refused(schedule=MORNINGS, deadline=DAILY_KEYS), "deadline is CronPartitionTimetable()"),
    (refused(schedule=(A & B).since(DAILY_KEYS)), "since is CronPartitionTimetable()"),
    (opening(timetable=CronTriggerTimetable("@daily", catchup="latest")), "timetable has a catchup"),
    (opening(timetable="orders"), "orders"),
    (opening(until="tomorrow"), "tomorrow"),
    (opening(assets="orders"), "orders"),
    (refused(schedule=MORNINGS, deadline="tomorrow"), "tomorrow"),
]


@pytest.mark.rule("9.1", "9.5", "9.16")
@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_cannot_work_is_refused_and_the_error_says_what_to_do(make: Callable[[], object], message: str) -> None:
    with pytest.raises((InvalidSchedule, InvalidTimetable)) as caught:
        make()
    error: AssetflowError = caught.value
    assert message in error.message
    assert error.fix
