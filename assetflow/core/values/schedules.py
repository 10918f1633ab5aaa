"""Schedules: `Schedule`, into which every value of `schedule=` is converted, and the options of a consumer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeVar, cast

from assetflow.core.partitions import IdentityMapper, PartitionMapper, RollupMapper, TemporalMapper, check_mapper
from assetflow.core.partitions.base import check_directives
from assetflow.core.time.timetables import CronPartitionTimetable, PartitionedAtRuntime, Timetable
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef
from assetflow.core.values.conditions import AssetLike, Condition, Token, stands_for
from assetflow.core.values.keeping import NOTHING, DataFlow, Keeping
from assetflow.core.values.timing import Deadline, Intake, Opening, check_timing, one_by_one
from assetflow.errors import InvalidSchedule, InvalidTimetable, NameTaken

WhilePaused = Literal["drop", "keep"]
# The keys of `partition_mapper_config=`: a variable, since `dict[Asset, …]` is not a `Mapping[Asset | AssetRef, …]`.
MapperTarget = TypeVar("MapperTarget", bound=Asset | AssetRef | AssetLike)
MapperPairs = tuple[tuple[Asset | AssetRef, PartitionMapper], ...]


@dataclass(frozen=True)
class Partitioning:
    """The mappers of a partitioned schedule. Contract 5.1, 5.2.

    Attributes:
        default: the mapper of every asset that has none in `mappers`.
        mappers: pairs of an asset or reference and its mapper. The first pair that fits an event's asset counts.
    """

    default: PartitionMapper = field(default_factory=IdentityMapper)
    mappers: MapperPairs = ()

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
    meant = stands_for(target)
    if isinstance(meant, Asset | AssetRef):
        return meant
    raise InvalidSchedule(
        f"a mapper belongs to one asset or reference, not to {target!r}",
        rule="5.2",
        fix="Give each asset an entry of its own, or use the default mapper",
    )


def mapper_pairs(config: Mapping[MapperTarget, PartitionMapper] | None) -> MapperPairs:
    """Return the pairs of `partition_mapper_config=`, after checking them.

    Raises:
        InvalidSchedule: a mapper is given for something else than one asset or reference.
        InvalidPartition: a value given as a mapper is not a mapper.
    """
    return tuple((check_mapper_target(target), check_mapper(mapper)) for target, mapper in (config or {}).items())


@dataclass(frozen=True)
class Schedule:
    """The form of every schedule inside assetflow. Each of its parts may be missing.

    Attributes:
        condition: the assets that have to be updated.
        partitioning: the mappers of partition keys; `None` for a plain schedule.
        timetable: the times at which the clock starts runs (6.1).
        opening: when the condition may start runs; `None` for always (9.7).
        keeping: how the flow keeps its outputs up to date, instead of a condition (8.1).
        one_by_one: Airflow's `batch_asset_events=False`, which sets `max_events` to 1 (9.10).
    """

    condition: Condition | None = None
    partitioning: Partitioning | None = None
    timetable: Timetable | None = None
    opening: Opening | None = None
    keeping: Keeping | None = None
    one_by_one: bool = field(default=False, compare=False)

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
        return self.condition is not None or self.has_times or self.keeping is not None

    @cached_property
    def tokens(self) -> frozenset[Token]:
        """The tokens of the condition; empty for a schedule of times only."""
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
        kept = self.keeping.named_assets if self.keeping is not None else ()
        return (*in_condition, *in_mappers, *kept)

    @property
    def kind_without_assets(self) -> Literal["time only", "eager", "lazy", "no schedule"]:
        """What starts the flow, if the schedule has no condition on assets."""
        if self.keeping is not None:
            return self.keeping.kind
        return "no schedule" if self.timetable is None else "time only"

    def describe(self) -> str:
        """Return the schedule in words: its condition and when that may start runs, or its times, or both."""
        parts: list[str] = []
        if self.condition is not None:
            hours = "" if self.opening is None else f", {self.opening.describe()}"
            parts.append(f"{self.condition.describe()}{hours}")
        if self.timetable is not None:
            latest = ", of missed times only the latest" if self.timetable.catchup == "latest" else ""
            parts.append(f"{self.timetable.describe()}{latest}")
        if self.keeping is not None:
            parts.append(self.keeping.describe())
        return ", or ".join(parts) if parts else "only when a person, a backfill or Prefect starts it"


class ScheduleLike:
    """The base class of what `schedule=` takes beside conditions and timetables: each makes its schedule at once."""

    _schedule: Schedule

    def as_schedule(self) -> Schedule:
        """Return the schedule in the one form that all schedules have inside assetflow."""
        return self._schedule


@dataclass(frozen=True)
class ConsumerOptions:
    """The options of `@flow` that say how a deployment consumes events.

    Attributes:
        schedule: what it runs on.
        while_paused: "drop" or "keep": what happens to updates while it is paused (contract 3.4).
        coalesce: it makes no decision while one of its runs goes on (contract 4.7).
        intake: how many updates a decision takes, and how often (contract 9.9 to 9.11).
        deadline: by when a decision has to come; `None` for no deadline (contract 9.8).
        data: what the flow reads and makes (contract chapter 8).

    Raises:
        InvalidSchedule: `while_paused` is neither "drop" nor "keep", `coalesce` is neither True nor False, or intake
            and deadline do not fit the schedule (9.16).
    """

    schedule: Schedule = field(default_factory=Schedule)
    while_paused: WhilePaused = "drop"
    coalesce: bool = False
    intake: Intake = field(default_factory=Intake)
    deadline: Deadline | None = None
    data: DataFlow = NOTHING

    def __post_init__(self) -> None:
        if self.while_paused not in ("drop", "keep"):
            raise InvalidSchedule(f"while_paused is {self.while_paused!r}", rule="3.4", fix='Write "drop" or "keep"')
        if not isinstance(cast(object, self.coalesce), bool):
            raise InvalidSchedule(f"coalesce is {self.coalesce!r}", rule="4.7", fix="Write True or False")
        if self.schedule.keeping is not None and self.while_paused == "keep":
            raise InvalidSchedule(
                'while_paused="keep" has no meaning with Eager and Lazy: a pause loses nothing',
                rule="8.8",
                fix="Say with catchup what is owed after a pause",
            )
        if self.schedule.one_by_one:
            object.__setattr__(self, "intake", one_by_one(self.intake))
        check_timing(self.schedule, self.intake, self.deadline)

    @property
    def takes_part(self) -> bool:
        """True if the flow is a consumer: it has a schedule, or policies, which are judged without one (8.11).

        Others stand in the data graph only (chapter 8, Words).
        """
        return self.schedule.starts_runs or bool(self.data.policies)

    @property
    def takes_updates(self) -> bool:
        """True if its runs consume updates, or compare them."""
        return self.schedule.condition is not None or self.schedule.keeping is not None

    @cached_property
    def input_tokens(self) -> frozenset[Token]:
        """The tokens of what the flow reads: of its own outputs only those that the schedule names (chapter 8)."""
        keeping = self.schedule.keeping
        named = self.schedule.tokens if keeping is None else keeping.start_tokens
        read = {*self.data.inlets, *(token for output in self.data.outputs for token in output.inlets)}
        return named | (read - {output.asset for output in self.data.outputs})

    @cached_property
    def wanted_tokens(self) -> frozenset[Token]:
        """The tokens of the events that are offered to the consumer: those of its condition, or of its inputs."""
        return self.schedule.tokens if self.schedule.keeping is None else self.input_tokens

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
            condition.has_time_gates
            or self.schedule.opening is not None
            or self.intake != Intake()
            or self.deadline is not None
        )


def check_schedule(schedule: Schedule) -> None:
    """Refuse a schedule that can never work.

    Raises:
        InvalidSchedule: a mapper belongs to an asset that is not in the schedule, or a partition would wait for ever.
        InvalidPartition, InvalidTimetable: a key format has an unknown directive or cannot be read back.
        NameTaken: two URIs have the same name.
    """
    _refuse_shared_names(schedule)
    _refuse_unused_mappers(schedule)
    for mapper in _mappers(schedule.partitioning):
        if isinstance(mapper, TemporalMapper):
            mapper.check_formats()
    if isinstance(schedule.timetable, CronPartitionTimetable):
        check_directives(schedule.timetable.key_format, "key_format", InvalidTimetable)
    refuse_endless_waiting(schedule)


def never_runs(schedule: Schedule) -> bool:
    """Return True if the condition names no asset, so that no update can ever start a run. Contract 4.1."""
    return schedule.condition is not None and not schedule.tokens


def refuse_endless_waiting(schedule: Schedule) -> None:
    """Refuse a schedule with a roll-up that no key can ever complete, because its window and its mapper do not fit.

    Raises:
        InvalidSchedule: there is such a roll-up. The error names both key formats.
    """
    parts = schedule.partitioning
    mappers = () if parts is None else (parts.default, *(mapper for _, mapper in parts.mappers))
    for mapper in mappers:
        problem = mapper.problem() if isinstance(mapper, RollupMapper) else None
        if problem is not None:
            raise InvalidSchedule(
                f"A partition would wait for ever. {problem}",
                rule="5.2",
                fix="Give a window as long as the mapper's periods, and the input_format of the upstream keys",
            )


def _refuse_shared_names(schedule: Schedule) -> None:
    owners: dict[str, str] = {}
    for asset in schedule.named_assets:
        owner = owners.setdefault(asset.name, asset.uri)
        if owner != asset.uri:
            raise NameTaken(
                f"the schedule gives the name {asset.name!r} to {owner!r} and to {asset.uri!r}",
                rule="1.2",
                fix="Give one of the two assets another name",
            )


def _refuse_unused_mappers(schedule: Schedule) -> None:
    """Refuse a mapper for an asset that is not in the schedule. With an alias in it, any asset may come."""
    condition, parts = schedule.condition, schedule.partitioning
    if condition is None or parts is None or any(isinstance(leaf, AssetAlias) for leaf in condition.leaves):
        return
    known = {token for leaf in condition.leaves for token in _tokens(leaf)}
    for target, _ in parts.mappers:
        if known.isdisjoint(_tokens(target)):
            raise InvalidSchedule(
                f"there is a mapper for {target!r}, which is not in the schedule ({condition.describe()})",
                rule="5.2",
                fix="Add it to assets=, or write it in partition_mapper_config in the same way as in assets=",
            )


def _tokens(leaf: object) -> frozenset[Token]:
    """Return the tokens by which a mapper can find a leaf: its URI and its name."""
    if isinstance(leaf, Asset):
        return frozenset((leaf.token, Token("name", leaf.name)))
    return frozenset((leaf.token,)) if isinstance(leaf, AssetRef) else frozenset()


def _mappers(parts: Partitioning | None) -> Iterator[PartitionMapper]:
    """Yield all mappers of a schedule, also those that are parts of others."""
    waiting = [] if parts is None else [parts.default, *(mapper for _, mapper in parts.mappers)]
    while waiting:
        mapper = waiting.pop()
        yield mapper
        waiting.extend(mapper.parts)
