"""The consumers of a scenario: a schedule with its options, and how runs go that last."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Annotated, Any, cast

from assetflow.core.simulate.conditions import (
    ACondition,
    ALeaf,
    AMapperPair,
    AnAsset,
    CronForm,
    PartitionedForm,
    PartitioningForm,
    Uri,
    read_asset,
    read_condition,
)
from assetflow.core.simulate.reading import (
    Deferred,
    Span,
    Whole,
    as_bool,
    as_list,
    as_object,
    as_text,
    is_object,
    read,
    single,
)
from assetflow.core.time.timetables import DEFAULT_KEY_FORMAT, CronPartitionTimetable, PartitionedAtRuntime, Timetable
from assetflow.core.values.assets import Asset, AssetRef
from assetflow.core.values.conditions import Leaf
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.keeping import DataFlow, Keeping, Output
from assetflow.core.values.schedules import ConsumerOptions, Schedule, WhilePaused
from assetflow.core.values.timing import Deadline, Intake, OnDeadline, Opening, make_deadline
from assetflow.errors import InvalidSchedule


@dataclass(frozen=True, kw_only=True)
class _CronPartition(CronForm):
    run_offset: Whole = 0
    key_format: str = DEFAULT_KEY_FORMAT

    def build(self) -> Schedule:
        zone = "UTC" if self.timezone is None else self.timezone
        return Schedule(timetable=CronPartitionTimetable(self.cron, zone, self.run_offset, self.key_format))


@dataclass(frozen=True, kw_only=True)
class _AssetOrTime:
    cron: CronForm
    timezone: str = "UTC"
    assets: ACondition

    def build(self) -> Schedule:
        return Schedule(condition=self.assets(), timetable=self.cron.timetable(self.timezone))


def _read_assets(value: object, where: str) -> Deferred[Schedule]:
    kind, inner = single(value)
    if kind == "partitioned":
        return read(PartitionedForm, inner, where).build
    condition = read_condition(value, where)
    return lambda: Schedule(condition=condition())


@dataclass(frozen=True, kw_only=True)
class _AssetAndTime(CronForm):
    until: CronForm | None = None
    assets: Annotated[Deferred[Schedule], _read_assets]

    def build(self) -> Schedule:
        opens = self.timetable()
        return replace(self.assets(), opening=Opening(opens, self.until and self.until.timetable(opens.timezone)))


@dataclass(frozen=True, kw_only=True)
class _Lazy:
    retries: Whole | None = None
    retry_delay: Span | None = None
    expected: Span | None = None

    def build(self) -> Schedule:
        return Schedule(keeping=self._keeping("lazy"))

    def _keeping(self, kind: Any, **options: object) -> Keeping:
        given = {
            "retries": self.retries,
            "retry_delay": self.retry_delay,
            "expected_duration": self.expected,
            **options,
        }
        return Keeping(kind, **{name: cast("Any", value) for name, value in given.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class _OnMissing(_Lazy):
    catchup: object = None
    lookback: Whole | None = None
    triggers: tuple[ALeaf, ...] = ()
    partitioned: PartitioningForm | None = None
    mappers: tuple[AMapperPair, ...] = ()

    def build(self) -> Schedule:
        keeping = self._keeping(
            "eager",
            starts=tuple(_start(trigger()) for trigger in self.triggers),
            on=self._on,
            catchup=self.catchup,
            lookback=self.lookback,
            mappers=tuple(pair() for pair in self.mappers),
        )
        return Schedule(partitioning=self.partitioned and self.partitioned.partitioning(), keeping=keeping)

    @property
    def _on(self) -> object:
        return ()


@dataclass(frozen=True, kw_only=True)
class _Eager(_OnMissing):
    on: object = None

    @property
    def _on(self) -> object:
        return self.on


def _start(leaf: Leaf) -> Asset | AssetRef:
    if isinstance(leaf, Asset | AssetRef):
        return leaf
    raise InvalidSchedule(
        f"{leaf!r} cannot start an Eager flow", rule="8.1", fix="Name assets or references; alias inlets are not inputs"
    )


_SCHEDULES: Mapping[str, type[Any]] = {
    "asset_or_time": _AssetOrTime,
    "asset_and_time": _AssetAndTime,
    "partitioned": PartitionedForm,
    "eager": _Eager,
    "on_missing": _OnMissing,
    "lazy": _Lazy,
    "cron": CronForm,
    "cron_partition": _CronPartition,
}


def _read_schedule(value: object, where: str) -> Deferred[Schedule]:
    """Read a schedule: a condition, a timetable, both, a partitioned condition, or nothing."""
    if value is None:
        return Schedule
    kind, inner = single(value)
    place = f"{where}, {kind}"
    if kind in _SCHEDULES:
        return read(_SCHEDULES[kind], inner, place).build
    if kind == "partitioned_at_runtime":
        as_bool(inner, place)
        return lambda: Schedule(timetable=PartitionedAtRuntime())
    return _read_assets(value, where)


@dataclass(frozen=True, kw_only=True)
class _Policy:
    maximum_lag: Span | None = None
    deadline: object = None
    timezone: object = "UTC"
    warn_after: Span | None = None
    inputs: tuple[AnAsset, ...] | None = None

    def build(self) -> FreshnessPolicy:
        return FreshnessPolicy(
            cast("timedelta", self.maximum_lag),
            cast("str | None", self.deadline),
            cast("str", self.timezone),
            self.warn_after,
            None if self.inputs is None else [each() for each in self.inputs],
        )


def _read_policies(value: object, where: str) -> list[tuple[Deferred[Asset], _Policy]]:
    return [(read_asset(uri, where), read(_Policy, each, where)) for uri, each in as_object(value, where).items()]


Made = tuple[Deferred[Asset], tuple[Deferred[Asset], ...]]


def _read_made(value: object, where: str) -> list[Made]:
    """Read what a consumer makes: a list, or an object with what each asset is made from."""
    inlets = value if is_object(value) else {as_text(each, where): () for each in as_list(value, where)}
    return [
        (read_asset(output, where), read(tuple[AnAsset, ...], given, f"{where} {output!r}"))
        for output, given in inlets.items()
    ]


def _read_deadline(value: object, where: str) -> Callable[[str], timedelta | Timetable]:
    """Read a deadline, a span or a cron; a cron without a time zone has that of the opening hours."""
    if isinstance(value, str) or is_object(value):
        return read(CronForm, value, where).timetable
    span: timedelta = read(Span, value, where)
    return lambda _: span


def _read_seconds(value: object, where: str) -> tuple[float, ...]:
    return read(tuple[float, ...], cast("object", value) if isinstance(value, list) else [value], where)


@dataclass(frozen=True, kw_only=True)
class ConsumerForm:
    """A consumer with options. Those of chapter 9, and how its runs go that last, are as in the contract.

    Attributes:
        makes: what it makes; its runs last from their begin to their end if it says so.
        takes: the seconds that its first, second … run takes; `None` if its runs end by a step.
        outcomes: the states in which they end.
        gives: the data versions of each output that they give.
    """

    schedule: Annotated[Deferred[Schedule], _read_schedule]
    paused: bool = False
    while_paused: WhilePaused = "drop"
    coalesce: bool = False
    debounce: Span | None = None
    max_wait: Span | None = None
    min_events: Whole | None = None
    max_events: Whole | None = None
    cooldown: Span | None = None
    deadline: Annotated[Callable[[str], timedelta | Timetable], _read_deadline] | None = None
    on_deadline: str = "alert"
    makes: Annotated[list[Made], _read_made] | None = None
    reads: tuple[AnAsset, ...] = ()
    code_version: object = None
    freshness: Annotated[Sequence[tuple[Deferred[Asset], _Policy]], _read_policies] = ()
    takes: Annotated[tuple[float, ...], _read_seconds] | None = None
    outcomes: tuple[str, ...] = ()
    gives: Mapping[Uri, tuple[object, ...]] = field(default_factory=dict[str, tuple[object, ...]])

    def options(self) -> ConsumerOptions:
        """Return the options that a deployed flow would have."""
        schedule = self.schedule()
        intake = Intake(self.debounce, self.max_wait, self.min_events, self.max_events, self.cooldown)
        return ConsumerOptions(
            schedule, self.while_paused, self.coalesce, intake, self._deadline(schedule), self._data_flow()
        )

    def _deadline(self, schedule: Schedule) -> Deadline | None:
        zone = "UTC" if schedule.opening is None else schedule.opening.timezone
        return make_deadline(self.deadline and self.deadline(zone), cast("OnDeadline", self.on_deadline))

    def _data_flow(self) -> DataFlow:
        version = cast("str | None", self.code_version)
        outputs = tuple(
            Output(output().token, tuple(inlet().token for inlet in inlets), version)
            for output, inlets in self.makes or ()
        )
        policies = {asset().token: policy.build() for asset, policy in self.freshness}
        return DataFlow(outputs, tuple(each().token for each in self.reads), policies)

    def declares(self) -> tuple[Asset, ...]:
        """Return the assets that it makes and reads."""
        return tuple(each() for each in (*(output for output, _ in self.makes or ()), *self.reads))


@dataclass(frozen=True)
class ConsumerSpec:
    """A consumer of a scenario.

    Attributes:
        declares: the assets that it makes and reads.
        paused: whether it is paused if it is new.
        is_timed: whether it is written with anything of chapter 9.
        runs: how its runs go that last; `None` if they are over at once.
    """

    options: Deferred[ConsumerOptions]
    declares: Deferred[tuple[Asset, ...]] = tuple
    paused: bool = False
    is_timed: bool = False
    runs: ConsumerForm | None = None


def read_consumer(value: object, where: str) -> ConsumerSpec:
    """Read a consumer: a schedule, or an object with a schedule and options."""
    if not (is_object(value) and "schedule" in value):
        schedule = _read_schedule(value, where)
        return ConsumerSpec(lambda: ConsumerOptions(schedule()), is_timed=_uses_time(value))
    form: ConsumerForm = read(ConsumerForm, value, where)
    runs = None if form.makes is None else form
    return ConsumerSpec(form.options, form.declares, form.paused, _uses_time(value), runs)


_TIMED = {"at_least", "times", "within", "since", "asset_and_time", "deadline", "on_deadline"} | {
    *("debounce", "max_wait", "cooldown", "min_events", "max_events")
}
_LEAVES = {"asset", "ref", "alias"}


def _uses_time(value: object) -> bool:
    """Return True if a consumer is written with anything of chapter 9."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(cast("list[object]", node))
        elif is_object(node) and not node.keys() & _LEAVES:
            if node.keys() & _TIMED:
                return True
            waiting.extend(inner for key, inner in node.items() if key != "freshness")
    return False
