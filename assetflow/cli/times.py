"""Read the times that users type on the command line."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from assetflow.errors import InvalidSettings

_AGE = re.compile(r"(\d+)([smhdw])")
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def in_utc(time: datetime) -> datetime:
    """Return the time in UTC. A time without a zone is taken as UTC."""
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def since_option(text: str | None) -> datetime | None:
    """Return the time that `--since` names, taken as UTC if it has no zone, or `None` if the option was not given.

    Parameters:
        text: a time, or how long ago it was: `90m`, `2h`, `3d`.

    Raises:
        InvalidSettings: the text is not a time.
    """
    if text is None:
        return None
    with suppress(ValueError, OverflowError):
        age = _AGE.fullmatch(text)
        return in_utc(datetime.fromisoformat(text)) if age is None else datetime.now(UTC) - int(age[1]) * _UNITS[age[2]]
    raise InvalidSettings(
        f"{text!r} is not a time",
        where="--since",
        fix="Write 2026-11-20, 2026-11-20T08:00:00Z, or 2h for two hours ago",
    )
