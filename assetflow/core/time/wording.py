"""The times of a timetable in words, as they stand after "from", "to" and "since"."""

from __future__ import annotations

from assetflow.core.time.timetables import (
    CronPartitionTimetable,
    CronTriggerTimetable,
    RRuleTimetable,
    Timetable,
)


def zone_of(timetable: Timetable) -> str:
    """Return the time zone on whose wall clock a timetable goes: UTC for intervals."""
    with_zone = isinstance(timetable, CronTriggerTimetable | CronPartitionTimetable | RRuleTimetable)
    return timetable.timezone if with_zone else "UTC"


def times_in_words(timetable: Timetable, *, known_zone: str = "") -> str:
    """Return the times of a timetable: "06:00 (Europe/Berlin)", "06:00 on Monday (UTC)".

    Parameters:
        known_zone: a time zone that readers have seen already, so that it is left out.
    """
    words = timetable.describe().replace(" every day (", " (")
    zone = f" ({zone_of(timetable)})"
    if known_zone == zone_of(timetable):
        words = words.removesuffix(zone)
    return words.removeprefix("at ") if words.startswith("at ") else f"the latest time {words}"
