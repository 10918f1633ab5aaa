"""Timetables as JSON, the form of schedules in stored deployments: the way back from `Timetable.as_json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from assetflow.core.time.timetables import (
    CronPartitionTimetable,
    CronTriggerTimetable,
    DeltaTriggerTimetable,
    PartitionedAtRuntime,
    RRuleTimetable,
    Timetable,
)
from assetflow.errors import InvalidTimetable


def timetable_from_json(value: Mapping[str, object]) -> Timetable:
    """Return the timetable that `as_json` wrote.

    Raises:
        InvalidTimetable: the kind is unknown, or does not have these options.
    """
    options = {name: option for name, option in value.items() if name != "kind"}
    make = _KINDS.get(str(value.get("kind")))
    if make is None:
        raise InvalidTimetable(
            f"There is no timetable of the kind {value.get('kind')!r}", fix=f"Known kinds: {', '.join(_KINDS)}."
        )
    try:
        return make(**options)
    except (TypeError, ValueError) as cause:
        if isinstance(cause, InvalidTimetable):
            raise
        raise InvalidTimetable(f"The timetable {dict(value)!r} cannot be read: {cause}") from cause


def _delta_from_json(*, seconds: float, start: str | None = None, **options: Any) -> DeltaTriggerTimetable:
    first = None if start is None else datetime.fromisoformat(start)
    return DeltaTriggerTimetable(timedelta(seconds=seconds), first, **options)


_KINDS: dict[str, Callable[..., Timetable]] = {
    "cron": CronTriggerTimetable,
    "cron_partition": CronPartitionTimetable,
    "delta": _delta_from_json,
    "rrule": RRuleTimetable,
    "partitioned_at_runtime": PartitionedAtRuntime,
}
