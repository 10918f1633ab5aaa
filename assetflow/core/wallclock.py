"""What a clock on the wall shows, and the instants at which it shows it.

A time of day is missing on the day the clock goes forward, and comes twice on the day it goes back. Every rule about
such days asks for one of the three answers below.
"""

from __future__ import annotations

from datetime import UTC, datetime
from difflib import get_close_matches
from zoneinfo import ZoneInfo, available_timezones

from assetflow.errors import AssetflowError, InvalidTimetable


def find_zone(name: str, error: type[AssetflowError] = InvalidTimetable, *, rule: str = "6.2") -> ZoneInfo:
    """The time zone of this IANA name ("Europe/Berlin").

    Parameters:
        name: a name of the IANA database, in its spelling.
        error: the kind of error to raise.
        rule: the contract's rule to cite.

    Raises:
        error: there is no such time zone; close matches are named.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError) as cause:
        close = get_close_matches(str(name), available_timezones(), n=3, cutoff=0.5)
        fix = f"Did you mean {', '.join(close)}?" if close else 'Give a name such as "UTC" or "Europe/Berlin".'
        raise error(f"There is no time zone {name!r}", fix=fix, rule=rule) from cause


def as_utc(moment: datetime) -> datetime:
    """The same instant in UTC. A time without a zone is refused: whose clock would it be?"""
    if moment.tzinfo is None:
        raise InvalidTimetable(
            f"The time {moment.isoformat()} has no time zone", fix="Give an aware datetime, e.g. with tzinfo=UTC."
        )
    return moment.astimezone(UTC)


def first_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """When the clock shows this the first time; if it skips it, the time moves on by what was skipped."""
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


def every_instant(wall: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """All instants at which the clock shows this: none if it skips it, two if it repeats it."""
    instants = dict.fromkeys(wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return tuple(sorted(instant for instant in instants if _shown(instant, zone) == wall))


def last_local(wall: datetime, zone: ZoneInfo) -> datetime:
    """The aware local time that this wall time stands for in a partition key.

    Of a repeated time the second counts, a skipped one moves on by the gap: keys follow Airflow here, whose
    producers write them.
    """
    second = wall.replace(tzinfo=zone, fold=1)
    if _shown(second.astimezone(UTC), zone) == wall:
        return second
    return first_instant(wall, zone).astimezone(zone)


def _shown(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None)
