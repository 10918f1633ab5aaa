"""Wall times of a time zone, and the instants (times in UTC) at which a clock there shows them.

On the day on which a clock goes forward, it skips some wall times. On the day on which it goes back, it shows some
twice. `first_instant`, `every_instant` and `last_local` are the three rules for such wall times.
"""

from __future__ import annotations

from datetime import UTC, datetime
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from assetflow.errors import AssetflowError, InvalidTimetable


def find_zone(name: str, error: type[AssetflowError] = InvalidTimetable, *, rule: str = "6.2") -> ZoneInfo:
    """Return the time zone with this IANA name ("Europe/Berlin").

    Parameters:
        name: a name of the IANA database, spelled as there.
        error: the class of the error to raise.
        rule: the rule of the contract that the error cites.

    Raises:
        error: there is no such time zone. The error suggests similar names.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError) as cause:
        close = get_close_matches(str(name), available_timezones(), n=3, cutoff=0.5)
        fix = f"Similar names: {', '.join(close)}" if close else 'Give a name such as "UTC" or "Europe/Berlin"'
        raise error(f"There is no time zone {name!r}", fix=fix, rule=rule) from cause


def as_utc(moment: datetime) -> datetime:
    """Return the same instant in UTC.

    Raises:
        InvalidTimetable: the time has no time zone.
    """
    if moment.tzinfo is None:
        raise InvalidTimetable(
            f"The time {moment.isoformat()} has no time zone", fix="Give an aware datetime, e.g. with tzinfo=UTC."
        )
    return moment.astimezone(UTC)


def first_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return when the clock shows this time first; if it skips it, the time moved on by the gap."""
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


def every_instant(wall: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Return all instants at which the clock shows this time: none if it skips it, two if it repeats it."""
    instants = dict.fromkeys(wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return tuple(sorted(instant for instant in instants if _shown(instant, zone) == wall))


def last_local(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the local time, with its zone, that a wall time in a partition key stands for.

    Of a repeated time the second counts, and a skipped one moves on by the gap. Airflow, whose tasks may have written
    the key, reads it in the same way.
    """
    second = wall.replace(tzinfo=zone, fold=1)
    if _shown(second.astimezone(UTC), zone) == wall:
        return second
    return first_instant(wall, zone).astimezone(zone)


def _shown(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None)
