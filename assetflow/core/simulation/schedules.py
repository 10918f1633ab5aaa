"""Read the schedules of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from assetflow.core.simulate.conditions import read_condition
from assetflow.core.simulate.keeping import KEEPING, read_keeping
from assetflow.core.simulate.reading import Deferred, as_bool, as_object, is_object, need, single
from assetflow.core.simulation.partitioned import read_partitioned
from assetflow.core.simulation.timetables import read_cron, read_cron_in_zone, read_cron_partition
from assetflow.core.time.timetables import CronTriggerTimetable, PartitionedAtRuntime, Timetable
from assetflow.core.values.schedules import Schedule
from assetflow.core.values.timing import Opening


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
