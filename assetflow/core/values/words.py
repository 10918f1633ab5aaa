"""Times, counts and lists in words, for every text that people read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

SHOWN = 5


def at(moment: datetime) -> str:
    """Return a time as text, in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def iso(moment: datetime | None) -> str | None:
    """Return a time as ISO text in UTC with a "Z", and `None` for `None`."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def since(moment: datetime | None) -> str:
    """Return ` since …` with a leading space, and "" for `None`."""
    return "" if moment is None else f" since {at(moment)}"


def ago(value: datetime, now: datetime) -> str:
    """Return how long ago a time was, as in `5 min ago`; after 30 days its date."""
    seconds = (now - value).total_seconds()
    if seconds < 0:
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    for size, name in ((60, "s"), (3600, "min"), (86400, "h")):
        if seconds < size:
            unit = {"s": 1, "min": 60, "h": 3600}[name]
            return f"{int(seconds // unit)} {name} ago"
    days = int(seconds // 86400)
    return f"{days} d ago" if days < 30 else f"{value.astimezone(UTC):%Y-%m-%d}"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: `1 event`, `2 events`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def some(values: Collection[str], shown: int = SHOWN) -> str:
    """Return the first few values, and how many more there are: `a, b and 3 more`."""
    first = list(values)[:shown]
    more = len(values) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


def joined(parts: Sequence[str], word: str = "and") -> str:
    """Return a list in words: `a, b and c`."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"
