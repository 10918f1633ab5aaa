"""Schedules: the classes of Airflow that `schedule=` takes, and `Schedule`, into which all of them are converted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import Literal, Protocol, TypeVar, cast, runtime_checkable

from assetflow.core.assets import Asset, AssetRef
from assetflow.core.conditions import SCHEDULE_FIX, Condition, ConditionLike, ConditionValue, Token, to_condition
from assetflow.core.partitions import IdentityMapper, PartitionMapper, RollupMapper, check_mapper
from assetflow.core.time.moments import zone_of
from assetflow.core.time.timetables import CronTriggerTimetable, DeltaTriggerTimetable, PartitionedAtRuntime, Timetable
from assetflow.core.timing import Deadline, Intake, Opening
from assetflow.core.timing_checks import check_timing
from assetflow.errors import InvalidSchedule, InvalidTimetable, not_a

WhilePaused = Literal["drop", "keep"]


@dataclass(frozen=True)
class Partitioning:
    """The mappers of a partitioned schedule. Contract 5.1, 5.2.

    Attributes:
        default: the mapper of every asset that has none in `mappers`.
        mappers: pairs of an asset or reference and its mapper. The first pair that fits an event's asset counts.
    """

    default: PartitionMapper = field(default_factory=IdentityMapper)
    mappers: tuple[tuple[Asset | AssetRef, PartitionMapper], ...] = ()

    def mapper_for(self, tokens: frozenset[Token]) -> PartitionMapper:
        """Return the mapper of the asset with these tokens."""
        for target, mapper in self.mappers:
            if target.token in tokens:
                return mapper
        return self.default


def check_mapper_target(target: object) -> Asset | AssetRef:
    """Return the asset or reference that a mapper is given for. Contract 5.2.

    Raises:
        InvalidSchedule: the value is something else, such as a condition of several assets or an alias.
    """
    if isinstance(target, ConditionLike) and not isinstance(target, type):
        target = target.as_condition()
    if isinstance(target, Asset | AssetRef):
        return target
    raise InvalidSchedule(
        f"a mapper belongs to one asset or reference, not to {target!r}",
        rule="5.2",
        fix="Give each asset an entry of its own, or use the default mapper",
    )


@dataclass(frozen=True)
class Schedule:
    """The form of every schedule inside assetflow. Each of its parts may be missing.

    Attributes:
        condition: the assets that have to be updated.
        partitioning: the mappers of partition keys; `None` for a plain schedule.
        timetable: the times at which the clock starts runs (6.1).
        opening: when the condition may start runs; `None` for always (9.7).
    """

    condition: Condition | None = None
    partitioning: Partitioning | None = None
    timetable: Timetable | None = None
    opening: Opening | None = None

    @property
    def is_partitioned(self) -> bool:
        return self.partitioning is not None

    @property
    def has_times(self) -> bool:
        """True if the clock starts runs."""
        return self.timetable is not None and not isinstance(self.timetable, PartitionedAtRuntime)

    @property
    def starts_runs(self) -> bool:
        """True if updates of assets or the clock start runs."""
        return self.condition is not None or self.has_times

    @cached_property
    def tokens(self) -> frozenset[Token]:
        """The tokens of the condition; none for a schedule of times only."""
        return self.condition.tokens if self.condition is not None else frozenset()

    @cached_property
    def judging_tokens(self) -> frozenset[Token]:
        """The tokens of the condition and of the assets that mappers are given for."""
        mappers = self.partitioning.mappers if self.partitioning is not None else ()
        return self.tokens | {target.token for target, _ in mappers}

    @cached_property
    def has_rollup(self) -> bool:
        parts = self.partitioning
        return parts is not None and any(
            isinstance(mapper, RollupMapper) for mapper in (parts.default, *(m for _, m in parts.mappers))
        )

    @property
    def named_assets(self) -> tuple[Asset, ...]:
        """The assets in the schedule, in order. The schedule declares their names (contract 1.2)."""
        in_condition = [] if self.condition is None else [x for x in self.condition.leaves if isinstance(x, Asset)]
        in_mappers = [x for x, _ in self.partitioning.mappers if isinstance(x, Asset)] if self.partitioning else []
        return (*in_condition, *in_mappers)

    def describe(self) -> str:
        """Return the schedule in words: its condition and when that may start runs, or its times, or both."""
        parts: list[str] = []
        if self.condition is not None:
            hours = "" if self.opening is None else f", {self.opening.describe()}"
            parts.append(f"{self.condition.describe()}{hours}")
        if self.timetable is not None:
            parts.append(self.timetable.describe())
        return ", or ".join(parts) if parts else "never by itself"


@dataclass(frozen=True)
class ConsumerOptions:
    """The options of `@flow` that say how a deployment consumes events.

    Attributes:
        schedule: what it runs on.
        while_paused: "drop" or "keep": what happens to updates while it is paused (contract 3.4).
        coalesce: it makes no decision while one of its runs goes on (contract 4.7).
        intake: how many updates a decision takes, and how often (contract 9.9 to 9.11).
        deadline: by when a decision has to come; `None` for no deadline (contract 9.8).

    Raises:
        InvalidSchedule: `while_paused` is neither "drop" nor "keep", `coalesce` is neither True nor False, or intake
            and deadline do not fit the schedule (9.16).
    """

    schedule: Schedule = field(default_factory=Schedule)
    while_paused: WhilePaused = "drop"
    coalesce: bool = False
    intake: Intake = field(default_factory=Intake)
    deadline: Deadline | None = None

    def __post_init__(self) -> None:
        if self.while_paused not in ("drop", "keep"):
            raise InvalidSchedule(f"while_paused is {self.while_paused!r}", rule="3.4", fix='Write "drop" or "keep"')
        if not isinstance(cast(object, self.coalesce), bool):
            raise InvalidSchedule(f"coalesce is {self.coalesce!r}", rule="4.7", fix="Write True or False")
        check_timing(self.schedule, self.intake, self.deadline)

    def describe(self) -> str:
        """Return the schedule in words, with intake and deadline: "orders; debounce 10 min; alert after 2 h"."""
        return "; ".join((self.schedule.describe(), *self.timing_in_words))

    @property
    def timing_in_words(self) -> tuple[str, ...]:
        """Intake and deadline in words, each only if it is given: "debounce 10 min", "at 08:00 with what is there"."""
        zone = "" if self.schedule.opening is None else self.schedule.opening.timezone
        deadline = "" if self.deadline is None else self.deadline.describe(known_zone=zone)
        return tuple(part for part in (self.intake.describe(), deadline) if part)

    @property
    def is_timed(self) -> bool:
        """Return True if decisions depend on when updates were recorded, or on the clock. Contract 9.6."""
        condition = self.schedule.condition
        return condition is not None and (
            condition.has_windows
            or self.schedule.opening is not None
            or self.intake != Intake()
            or self.deadline is not None
        )


# The keys of `partition_mapper_config=`: a variable, since `dict[Asset, …]` is not a `Mapping[Asset | AssetRef, …]`.
MapperTarget = TypeVar("MapperTarget", bound=Asset | AssetRef | ConditionLike)


class AssetOrTimeSchedule:
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

    Raises:
        InvalidSchedule: `assets` is not a condition, or the text is not a cron.
    """

    def __init__(self, *, timetable: Timetable | str | timedelta, assets: ConditionValue) -> None:
        self.timetable = _short_timetable(timetable)
        self.assets = to_condition(assets)

    def as_schedule(self) -> Schedule:
        """Return the schedule in the one form that all schedules have inside assetflow."""
        return Schedule(condition=self.assets, timetable=self.timetable)


class AssetAndTimeSchedule:
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
        self.opening = Opening(opens, None if until is None else _times("until", until, zone_of(opens)))
        self.assets = assets if isinstance(assets, PartitionedAssetTimetable) else to_condition(assets)

    def as_schedule(self) -> Schedule:
        """Return the schedule in the one form that all schedules have inside assetflow."""
        inner = self.assets
        schedule = inner.as_schedule() if isinstance(inner, PartitionedAssetTimetable) else Schedule(condition=inner)
        return replace(schedule, opening=self.opening)


class PartitionedAssetTimetable:
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
    ) -> None:
        if default_partition_mapper is not None and partition_key_mapper is not None:
            raise InvalidSchedule(
                "default_partition_mapper and partition_key_mapper are two names of one parameter",
                fix="Give one of them",
            )
        default = default_partition_mapper if partition_key_mapper is None else partition_key_mapper
        self.assets = to_condition(assets)
        self.partitioning = Partitioning(
            IdentityMapper() if default is None else check_mapper(default),
            tuple(
                (check_mapper_target(target), check_mapper(mapper))
                for target, mapper in (partition_mapper_config or {}).items()
            ),
        )

    def as_schedule(self) -> Schedule:
        """Return the schedule in the one form that all schedules have inside assetflow."""
        return Schedule(condition=self.assets, partitioning=self.partitioning)


@runtime_checkable
class ScheduleLike(Protocol):
    """An object that `schedule=` takes and that can be converted to a `Schedule`."""

    def as_schedule(self) -> Schedule: ...


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
        if isinstance(value, Condition | ConditionLike | list | tuple):
            return Schedule(condition=to_condition(cast("ConditionValue", value)))
        if isinstance(value, Timetable | str | timedelta):
            return Schedule(timetable=_short_timetable(value))
    message, fix = not_a(value, "a schedule", SCHEDULE_FIX)
    raise InvalidSchedule(message, fix=fix)


def _times(name: str, value: object, timezone: str) -> Timetable:
    """Return the timetable that opens or closes a schedule; a text is a cron in this time zone."""
    if isinstance(value, Timetable):
        return value
    if isinstance(value, str):
        return CronTriggerTimetable(value, timezone)
    message, fix = not_a(value, "a timetable", f'Write {name}="0 6 * * *" or {name}=CronTriggerTimetable("0 6 * * *")')
    raise InvalidTimetable(message, fix=fix, rule="9.7")


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
