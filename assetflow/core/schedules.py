"""Schedules: what a flow may be scheduled on, in the words of Airflow, and the one form that they all become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, cast, runtime_checkable

from assetflow.core.assets import Asset, AssetRef
from assetflow.core.conditions import Condition, ConditionLike, Token, to_condition
from assetflow.core.partitions import IdentityMapper, PartitionMapper, RollupMapper
from assetflow.core.timetables import CronTriggerTimetable, PartitionedAtRuntime, Timetable
from assetflow.errors import InvalidSchedule

WhilePaused = Literal["drop", "keep"]


@dataclass(frozen=True)
class Partitioning:
    """Which mapper turns the keys of which asset into target keys (5.1, 5.2).

    `mappers` are tried in order; the first whose asset or reference fits the event's asset counts.
    """

    default: PartitionMapper = field(default_factory=IdentityMapper)
    mappers: tuple[tuple[Asset | AssetRef, PartitionMapper], ...] = ()

    def mapper_for(self, tokens: frozenset[Token]) -> PartitionMapper:
        """The mapper of the asset that is known under these tokens."""
        for target, mapper in self.mappers:
            if target.token in tokens:
                return mapper
        return self.default


@dataclass(frozen=True)
class Schedule:
    """The one form of every schedule: a condition, how keys are mapped, a time table; each of them may be missing."""

    condition: Condition | None = None
    partitioning: Partitioning | None = None
    timetable: Timetable | None = None

    @property
    def is_partitioned(self) -> bool:
        return self.partitioning is not None

    @property
    def has_times(self) -> bool:
        """Whether the clock starts runs."""
        return self.timetable is not None and not isinstance(self.timetable, PartitionedAtRuntime)

    @property
    def starts_runs(self) -> bool:
        """Whether anything but a person starts runs: updates of assets, or the clock."""
        return self.condition is not None or self.has_times

    @cached_property
    def tokens(self) -> frozenset[Token]:
        """Where this schedule's events are found; none for a schedule of time only."""
        return self.condition.tokens if self.condition is not None else frozenset()

    @cached_property
    def judging_tokens(self) -> frozenset[Token]:
        """All tokens that say how an event is judged: those of the condition, and those that mappers belong to."""
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
        """The assets that stand in the schedule, in order: the names that it declares (1.2)."""
        in_condition = [] if self.condition is None else [x for x in self.condition.leaves if isinstance(x, Asset)]
        in_mappers = [x for x, _ in self.partitioning.mappers if isinstance(x, Asset)] if self.partitioning else []
        return (*in_condition, *in_mappers)

    def describe(self) -> str:
        """The schedule in words: what must be updated, or when it is."""
        parts: list[str] = []
        if self.condition is not None:
            parts.append(self.condition.describe())
        if self.timetable is not None:
            parts.append(self.timetable.describe())
        return ", or ".join(parts) if parts else "never by itself"


@dataclass(frozen=True)
class ConsumerOptions:
    """How a deployment consumes: its schedule, what happens while it is paused (3.4), and `coalesce` (4.7).

    Raises:
        InvalidSchedule: `while_paused` is neither "drop" nor "keep".
    """

    schedule: Schedule = field(default_factory=Schedule)
    while_paused: WhilePaused = "drop"
    coalesce: bool = False

    def __post_init__(self) -> None:
        if self.while_paused not in ("drop", "keep"):
            raise InvalidSchedule(f"while_paused is {self.while_paused!r}", rule="3.4", fix='Write "drop" or "keep"')


def refuse_endless_waiting(schedule: Schedule) -> None:
    """Refuse a schedule with a roll-up that no key can ever complete: its window and its mapper disagree.

    Raises:
        InvalidSchedule: there is one; both formats stand in the text.
    """
    parts = schedule.partitioning
    mappers = () if parts is None else (parts.default, *(mapper for _, mapper in parts.mappers))
    for mapper in mappers:
        problem = mapper.problem() if isinstance(mapper, RollupMapper) else None
        if problem is not None:
            raise InvalidSchedule(
                f"A partition would wait for ever. {problem}",
                rule="5.2",
                fix="Let the window have the length of the mapper's periods, and input_format fit the keys upstream",
            )


class AssetOrTimeSchedule:
    """Assets, or a time table: each starts its own runs (6.1).

    Parameters:
        timetable: a time table, or a cron text in UTC.
        assets: a condition, or a list (AND).
    """

    def __init__(self, *, timetable: Timetable | str, assets: object) -> None:
        self.timetable = CronTriggerTimetable(timetable) if isinstance(timetable, str) else timetable
        self.assets = to_condition(assets)

    def as_schedule(self) -> Schedule:
        return Schedule(condition=self.assets, timetable=self.timetable)


class PartitionedAssetTimetable:
    """One run per partition key of the assets (chapter 5).

    Parameters:
        assets: a condition, or a list (AND).
        default_partition_mapper: how keys become target keys; `IdentityMapper()` if none is given.
        partition_mapper_config: asset or reference to the mapper that counts for it.
        partition_key_mapper: another spelling of `default_partition_mapper`.
    """

    def __init__(
        self,
        *,
        assets: object,
        default_partition_mapper: PartitionMapper | None = None,
        partition_mapper_config: Mapping[Asset | AssetRef, PartitionMapper] | None = None,
        partition_key_mapper: PartitionMapper | None = None,
    ) -> None:
        if default_partition_mapper is not None and partition_key_mapper is not None:
            raise InvalidSchedule(
                "default_partition_mapper and partition_key_mapper are two spellings of one parameter",
                fix="Give one of them",
            )
        self.assets = to_condition(assets)
        self.partitioning = Partitioning(
            default_partition_mapper or partition_key_mapper or IdentityMapper(),
            tuple((partition_mapper_config or {}).items()),
        )

    def as_schedule(self) -> Schedule:
        return Schedule(condition=self.assets, partitioning=self.partitioning)


@runtime_checkable
class ScheduleLike(Protocol):
    """Something that knows the schedule that it means."""

    def as_schedule(self) -> Schedule: ...


def to_schedule(value: object) -> Schedule:
    """The schedule that a value of `schedule=` means.

    Raises:
        InvalidSchedule: it is nothing that a flow can be scheduled on.
    """
    if value is None:
        return Schedule()
    if isinstance(value, Schedule):
        return value
    if isinstance(value, ScheduleLike):
        return value.as_schedule()
    if isinstance(value, Condition | ConditionLike | list | tuple):
        return Schedule(condition=to_condition(cast(Sequence[object], value)))
    if isinstance(value, Timetable):
        return Schedule(timetable=value)
    raise InvalidSchedule(
        f"{value!r} is no schedule",
        fix='Write Asset("...") for an asset, CronTriggerTimetable("...") for a time table, '
        "and combine assets with `&`, `|` or a list",
    )
