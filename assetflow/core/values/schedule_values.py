"""What `schedule=` takes: conditions, timetables, and the classes of Airflow that join them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import cast

from assetflow.core.partitions import IdentityMapper, PartitionMapper, check_mapper
from assetflow.core.time.timetables import CronTriggerTimetable, DeltaTriggerTimetable, Timetable, zone_of
from assetflow.core.values.conditions import SCHEDULE_FIX, AssetLike, Condition, ConditionValue, to_condition
from assetflow.core.values.schedules import MapperTarget, Partitioning, Schedule, ScheduleLike, mapper_pairs
from assetflow.core.values.timing import Opening
from assetflow.errors import InvalidSchedule, InvalidTimetable, not_a


class AssetTriggeredTimetable(ScheduleLike):
    """A schedule of assets, by the name that Airflow has for it; `schedule=` takes the assets themselves, too.

    >>> from assetflow import Asset, flow
    >>> from assetflow.timetables import AssetTriggeredTimetable
    >>> @flow(schedule=AssetTriggeredTimetable(Asset("s3://shop/orders"), batch_asset_events=False))
    ... def report(): ...
    >>> report.schedule.describe()
    's3://shop/orders'

    Parameters:
        assets: a condition, or a list of them (AND).
        batch_asset_events: False for a run for each update, which is `max_events=1` (contract 9.10). True or `None`
            for one run for each recording, with all its updates (contract 4.3).

    Raises:
        InvalidSchedule: `assets` is not a condition.
    """

    def __init__(self, assets: ConditionValue, batch_asset_events: bool | None = None) -> None:
        self._schedule = Schedule(condition=to_condition(assets), one_by_one=batch_asset_events is False)


class AssetOrTimeSchedule(ScheduleLike):
    """A schedule of assets and of times. Each of the two starts runs of its own.

    >>> from assetflow import Asset, AssetOrTimeSchedule, flow
    >>> from assetflow.timetables import CronTriggerTimetable
    >>> midnight = CronTriggerTimetable("0 0 * * *", timezone="Europe/Berlin")
    >>> @flow(schedule=AssetOrTimeSchedule(timetable=midnight, assets=Asset("s3://shop/orders")))
    ... def report(): ...

    A run by time consumes no updates. Contract 6.1.

    Parameters:
        timetable: a timetable, a cron text in UTC such as "0 6 * * *" or "@daily", or a `timedelta` (contract 6.0).
        assets: a condition, or a list of them (AND).
        batch_asset_events: as in `assetflow.timetables.AssetTriggeredTimetable`.

    Raises:
        InvalidSchedule: `assets` is not a condition, or the text is not a cron.
    """

    def __init__(
        self,
        *,
        timetable: Timetable | str | timedelta,
        assets: ConditionValue,
        batch_asset_events: bool | None = None,
    ) -> None:
        times = _short_timetable(timetable)
        self._schedule = Schedule(to_condition(assets), timetable=times, one_by_one=batch_asset_events is False)


class AssetAndTimeSchedule(ScheduleLike):
    """A schedule of assets that may start runs only while it is open: from each time of a timetable on.

    >>> from assetflow import Asset, AssetAndTimeSchedule, flow
    >>> orders, customers = Asset("s3://shop/orders"), Asset("s3://shop/customers")
    >>> mornings = AssetAndTimeSchedule(timetable="0 6 * * *", assets=orders & customers, until="0 22 * * *")
    >>> @flow(schedule=mornings, deadline="0 8 * * *", on_deadline="run")
    ... def report(): ...
    >>> report.schedule.describe()
    's3://shop/orders AND s3://shop/customers, from 06:00 to 22:00 (UTC)'

    Each time of the timetable opens the schedule, and a run of its assets closes it until the next time. What is
    complete before the opening runs at the opening. There are no runs without updates. Contract 9.7.

    Parameters:
        timetable: a timetable, or a cron text in UTC such as "0 6 * * *" or "@daily".
        assets: a condition, a list of them (AND), or a `PartitionedAssetTimetable`, whose keys each run once for each
            opening.
        until: the times that close the schedule: a timetable, or a cron text in the time zone of `timetable`. If it is
            `None`, the schedule stays open until it has run.

    Raises:
        InvalidSchedule: `assets` is not a condition, or `until` is equal to `timetable`.
        InvalidTimetable: `timetable` or `until` is not a timetable, or the text is not a cron.
    """

    def __init__(
        self,
        *,
        timetable: Timetable | str,
        assets: ConditionValue | PartitionedAssetTimetable,
        until: Timetable | str | None = None,
    ) -> None:
        opens = _times("timetable", timetable, "UTC")
        opening = Opening(opens, None if until is None else _times("until", until, zone_of(opens)))
        partitioned = isinstance(assets, PartitionedAssetTimetable)
        inner = assets.as_schedule() if partitioned else Schedule(condition=to_condition(assets))
        self._schedule = replace(inner, opening=opening)


class PartitionedAssetTimetable(ScheduleLike):
    """A schedule with one run for each partition key of the assets.

    >>> from assetflow import Asset, PartitionedAssetTimetable, flow
    >>> from assetflow.partitions import StartOfDayMapper
    >>> hits = Asset("s3://lake/hits")
    >>> @flow(schedule=PartitionedAssetTimetable(assets=hits, default_partition_mapper=StartOfDayMapper()))
    ... def daily(partition_key: str | None = None): ...

    A mapper turns the key of each update into the key of the run that consumes it, the target key. Contract 5.1 to 5.3.

    Parameters:
        assets: a condition, or a list of them (AND).
        default_partition_mapper: the mapper of every asset that has none of its own; by default `IdentityMapper()`.
        partition_mapper_config: the assets and references that have a mapper of their own, each with its mapper.
        partition_key_mapper: another name of `default_partition_mapper`.
        batch_asset_events: as in `assetflow.timetables.AssetTriggeredTimetable`.

    Raises:
        InvalidSchedule: `assets` is not a condition, or a mapper is given for something else than one asset or
            reference.
        InvalidPartition: a value given as a mapper is not a mapper.
    """

    def __init__(
        self,
        *,
        assets: ConditionValue,
        default_partition_mapper: PartitionMapper | None = None,
        partition_mapper_config: Mapping[MapperTarget, PartitionMapper] | None = None,
        partition_key_mapper: PartitionMapper | None = None,
        batch_asset_events: bool | None = None,
    ) -> None:
        if default_partition_mapper is not None and partition_key_mapper is not None:
            raise InvalidSchedule(
                "default_partition_mapper and partition_key_mapper are two names of one parameter",
                fix="Give one of them",
            )
        default = default_partition_mapper if partition_key_mapper is None else partition_key_mapper
        condition = to_condition(assets)
        partitioning = Partitioning(
            IdentityMapper() if default is None else check_mapper(default), mapper_pairs(partition_mapper_config)
        )
        self._schedule = Schedule(condition, partitioning, one_by_one=batch_asset_events is False)


# What `schedule=` takes. Texts and timedeltas are short forms of timetables.
ScheduleValue = ConditionValue | ScheduleLike | Schedule | Timetable | str | timedelta


def to_schedule(value: object) -> Schedule:
    """Return the schedule that a value of `schedule=` stands for.

    Raises:
        InvalidSchedule: a flow cannot be scheduled on the value.
    """
    if value is None:
        return Schedule()
    if isinstance(value, Schedule):
        return value
    if not isinstance(value, type):
        if isinstance(value, ScheduleLike):
            return value.as_schedule()
        if isinstance(value, Condition | AssetLike | list | tuple):
            return Schedule(condition=to_condition(cast("ConditionValue", value)))
        if isinstance(value, Timetable | str | timedelta):
            return Schedule(timetable=_short_timetable(value))
    raise not_a(InvalidSchedule, value, "a schedule", SCHEDULE_FIX)


def _times(name: str, value: object, timezone: str) -> Timetable:
    """Return the timetable that opens or closes a schedule; a text is a cron in this time zone."""
    if isinstance(value, Timetable):
        return value
    if isinstance(value, str):
        return CronTriggerTimetable(value, timezone)
    raise not_a(
        InvalidTimetable,
        value,
        "a timetable",
        f'Write {name}="0 6 * * *" or {name}=CronTriggerTimetable("0 6 * * *")',
        rule="9.7",
    )


def _short_timetable(value: Timetable | str | timedelta) -> Timetable:
    """Return the timetable that a value stands for. Contract 6.0."""
    if isinstance(value, timedelta):
        return DeltaTriggerTimetable(value)
    if not isinstance(value, str):
        return value
    try:
        return CronTriggerTimetable(value)
    except InvalidTimetable as error:
        # A single word was hardly meant as a cron, so the cron's error would not help.
        detail = f": {error.message}" if len(value.split()) > 1 else ""
        raise InvalidTimetable(
            f"the text {value!r} is not a timetable{detail}",
            fix=f'Write Asset({value!r}) for an asset; for times a cron such as "0 6 * * *", or @hourly, @daily, '
            "@weekly, @monthly or @yearly",
            rule="6.0",
        ) from error
