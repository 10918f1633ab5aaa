"""Read the times that users type on the command line."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta

from assetflow.errors import InvalidSettings

_AGE = re.compile(r"(\d+)([smhdw])")
_HOUR = re.compile(r"\d\d:\d\d")
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def in_utc(moment: datetime) -> datetime:
    """Return the time in UTC. A time without a zone is taken as UTC."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def since_option(text: str | None, option: str = "--since") -> datetime | None:
    """Return the time that an option names, taken as UTC if it has no zone, or `None` if the option was not given.

    Parameters:
        text: a time; how long ago it was, as `90m`, `2h`, `3d`; or an hour, as `02:00`, for the last time it was that.

    Raises:
        InvalidSettings: the text is not a time.
    """
    if text is None:
        return None
    now = datetime.now(UTC)
    with suppress(ValueError, OverflowError):
        if _HOUR.fullmatch(text):
            today = datetime.combine(now, time.fromisoformat(text), UTC)
            return today if today <= now else today - timedelta(days=1)
        age = _AGE.fullmatch(text)
        return in_utc(datetime.fromisoformat(text)) if age is None else now - int(age[1]) * _UNITS[age[2]]
    raise InvalidSettings(
        f"{text!r} is not a time",
        where=option,
        fix="Write 2026-11-20, 2026-11-20T08:00:00Z, 02:00 for the last time it was that, or 2h for two hours ago",
    )
