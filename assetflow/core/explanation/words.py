"""How explanations speak: times, ids, counts and lists as a person says them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

SHOWN = 5


def at(moment: datetime) -> str:
    """A time as text, in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def iso(moment: datetime | None) -> str | None:
    """A time as JSON."""
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def since(moment: datetime | None) -> str:
    """` since …`, or nothing."""
    return "" if moment is None else f" since {at(moment)}"


def ago(value: datetime, now: datetime) -> str:
    """How long ago a time is, in words."""
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
    """`1 event`, `2 events`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def some(values: Collection[str], shown: int = SHOWN) -> str:
    """The first few values, and how many more there are."""
    first = list(values)[:shown]
    more = len(values) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


def joined(parts: Sequence[str], word: str = "and") -> str:
    """`a, b and c`."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"
