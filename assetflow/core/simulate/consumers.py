"""Read the consumers of a scenario: a schedule with its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast

from assetflow.core.simulate.conditions import (
    read_condition,
    read_cron,
    read_cron_in_zone,
    read_cron_partition,
    read_partitioned,
)
from assetflow.core.simulate.keeping import (
    DATA_KEYS,
    KEEPING,
    LastingRuns,
    read_data_flow,
    read_keeping,
    read_lasting_runs,
)
from assetflow.core.simulate.reading import (
    Deferred,
    as_bool,
    as_choice,
    as_count,
    as_object,
    as_span,
    as_text,
    is_object,
    need,
    single,
)
from assetflow.core.time.timetables import CronTriggerTimetable, PartitionedAtRuntime, Timetable
from assetflow.core.values.assets import Asset
from assetflow.core.values.schedules import ConsumerOptions, Schedule, WhilePaused
from assetflow.core.values.timing import Deadline, Intake, OnDeadline, Opening, make_deadline


def read_schedule(value: object, where: str) -> Deferred[Schedule]:
    """Read a schedule: a condition, a timetable, both, a partitioned condition, or nothing."""
    if value is None:
        return Schedule
    kind, inner = single(value)
    place = f"{where}, {kind}"
    if kind == "asset_or_time":
        return _asset_or_time(inner, place)
    if kind == "asset_and_time":
        return _asset_and_time(inner, place)
    if kind == "partitioned":
        return read_partitioned(inner, place)
    if kind in KEEPING:
        return read_keeping(kind, inner, place)
    if kind == "cron":
        return _timed(read_cron(inner, place))
    if kind == "cron_partition":
        return _timed(read_cron_partition(inner, place))
    if kind == "partitioned_at_runtime":
        as_bool(inner, place)
        return _timed(PartitionedAtRuntime)
    condition = read_condition(value, where)
    return lambda: Schedule(condition=condition())


def _asset_and_time(value: object, where: str) -> Deferred[Schedule]:
    data = as_object(value, where, ("cron", "timezone", "until", "assets"))
    need(data, ("cron", "assets"), where)
    timetable = read_cron({key: data[key] for key in ("cron", "timezone") if key in data}, where)
    until = None if data.get("until") is None else read_cron_in_zone(data["until"], f"{where}, until")
    kind, inner = single(data["assets"])
    assets = read_partitioned(inner, where) if kind == "partitioned" else _of_assets(data["assets"], where)

    def build() -> Schedule:
        opens = timetable()
        assert isinstance(opens, CronTriggerTimetable)
        return replace(assets(), opening=Opening(opens, until and until(opens.timezone)))

    return build


def _of_assets(value: object, where: str) -> Deferred[Schedule]:
    condition = read_condition(value, where)
    return lambda: Schedule(condition=condition())


def _timed(timetable: Deferred[Timetable]) -> Deferred[Schedule]:
    return lambda: Schedule(timetable=timetable())


def _asset_or_time(value: object, where: str) -> Deferred[Schedule]:
    data = as_object(value, where, ("cron", "timezone", "assets"))
    need(data, ("cron", "assets"), where)
    # The time zone is written beside the cron, or in one object with it.
    together: Mapping[str, object] = {key: data[key] for key in data if key != "assets"}
    timetable = read_cron(data["cron"] if is_object(data["cron"]) else together, where)
    assets = read_condition(data["assets"], where)
    return lambda: Schedule(condition=assets(), timetable=timetable())


_SPANS = ("debounce", "max_wait", "cooldown")
_COUNTS = ("min_events", "max_events")
_LASTING = ("takes", "outcomes", "gives")
_OPTIONS = (
    *("schedule", "paused", "while_paused", "coalesce"),
    *(*_SPANS, *_COUNTS, "deadline", "on_deadline"),
    *(*DATA_KEYS, *_LASTING),
)
_TIMED = {"at_least", "times", "within", "since", "asset_and_time", *_SPANS, *_COUNTS, "deadline", "on_deadline"}
_LEAVES = {"asset", "ref", "alias"}
_ELSEWHERE = {"freshness"}


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
    runs: LastingRuns | None = None


def read_consumer(value: object, where: str) -> ConsumerSpec:
    """Read a consumer: a schedule, or an object with a schedule and options."""
    if not (is_object(value) and "schedule" in value):
        schedule = read_schedule(value, where)
        return ConsumerSpec(lambda: ConsumerOptions(schedule()), is_timed=_uses_time(value))
    data = as_object(value, where, _OPTIONS)
    schedule = read_schedule(data["schedule"], where)
    while_paused = cast(
        "WhilePaused", as_choice(data.get("while_paused", "drop"), ("drop", "keep"), f"{where}, while_paused")
    )
    coalesce = as_bool(data.get("coalesce", False), f"{where}, coalesce")
    paused = as_bool(data.get("paused", False), f"{where}, paused")
    intake = _intake(data)
    deadline = _deadline(data, where)
    data_flow, declares = read_data_flow(data, where)

    def options() -> ConsumerOptions:
        built = schedule()
        return ConsumerOptions(built, while_paused, coalesce, intake(), deadline(built), data_flow())

    return ConsumerSpec(options, declares, paused, _uses_time(value), read_lasting_runs(data, where))


def _intake(data: Mapping[str, object]) -> Deferred[Intake]:
    def span(name: str) -> timedelta | None:
        return None if data.get(name) is None else as_span(data[name])

    def count(name: str) -> int | None:
        return None if data.get(name) is None else as_count(data[name])

    return lambda: Intake(
        span("debounce"), span("max_wait"), count("min_events"), count("max_events"), span("cooldown")
    )


def _deadline(data: Mapping[str, object], where: str) -> Callable[[Schedule], Deadline | None]:
    """Return what makes the deadline of a schedule; a cron without a time zone has that of the opening hours."""
    value, place = data.get("deadline"), f"{where}, deadline"
    then = cast("OnDeadline", as_text(data.get("on_deadline") or "alert", f"{where}, on_deadline"))
    if value is None:
        return lambda _: make_deadline(None, then)
    if isinstance(value, str) or is_object(value):
        cron = read_cron_in_zone(value, place)
        return lambda schedule: make_deadline(cron(_zone_of(schedule)), then)
    span = as_span(value)
    return lambda _: make_deadline(span, then)


def _zone_of(schedule: Schedule) -> str:
    return "UTC" if schedule.opening is None else schedule.opening.timezone


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
            waiting.extend(inner for key, inner in node.items() if key not in _ELSEWHERE)
    return False
