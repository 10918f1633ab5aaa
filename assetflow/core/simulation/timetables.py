"""Read the timetables of a scenario."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from assetflow.core.simulate.reading import Deferred, as_object, as_text, need
from assetflow.core.time.timetables import DEFAULT_KEY_FORMAT, CronPartitionTimetable, CronTriggerTimetable, Timetable


def read_cron(value: object, where: str) -> Deferred[Timetable]:
    """Read a cron: a text in UTC, or an object with cron and timezone."""
    data = as_object({"cron": value} if isinstance(value, str) else value, where, ("cron", "timezone"))
    need(data, ("cron",), where)
    return partial(
        CronTriggerTimetable, as_text(data["cron"], where), as_text(data.get("timezone", "UTC"), f"{where}, timezone")
    )


def read_cron_partition(value: object, where: str) -> Deferred[Timetable]:
    """Read a cron whose runs have a partition key."""
    data = as_object(
        {"cron": value} if isinstance(value, str) else value, where, ("cron", "timezone", "run_offset", "key_format")
    )
    need(data, ("cron",), where)
    return partial(
        CronPartitionTimetable,
        as_text(data["cron"], where),
        as_text(data.get("timezone", "UTC"), f"{where}, timezone"),
        cast("int", data.get("run_offset", 0)),
        as_text(data.get("key_format", DEFAULT_KEY_FORMAT), f"{where}, key_format"),
    )


def read_cron_in_zone(value: object, where: str) -> Callable[[str], Timetable]:
    """Return what makes a cron's timetable: its own time zone counts, or else the one that is given then."""
    data = as_object({"cron": value} if isinstance(value, str) else value, where, ("cron", "timezone"))
    read_cron(dict(data), where)
    return lambda zone: read_cron({"timezone": zone, **data}, where)()
