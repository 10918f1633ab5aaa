"""Times, spans, counts, lists and states: in words for every text that people read, and checked (contract 9.16).

A state has one word everywhere, which has the same sign and colour everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal
from urllib.parse import quote
from uuid import UUID

from assetflow.errors import InvalidSchedule

SHOWN = 5

Sign = Literal["good", "busy", "bad", "wait", "off", "pause", "stale", "outdated", "missing", ""]
Colour = Literal["good", "busy", "bad", "wait", "off"]

# docs/glossary.md shows it as a table.
STATES: Mapping[Sign, tuple[str, ...]] = {
    "good": (
        "completed",
        "fresh",
        "updated",
        "up to date",
        "pass",
        "ready",
        "satisfied",
        "consumed",
        "done",
        "watching",
        "starts",
    ),
    "busy": ("running", "launched", "retrying", "queued", "preparing"),
    "bad": ("failed", "crashed", "timedout", "undeliverable", "fail", "never", "not mapped", "failing", "refused"),
    "wait": ("late", "waiting", "pending", "scheduled", "awaitingretry", "warn", "dropped", "waits"),
    "pause": ("paused", "held", "stopped"),
    "off": ("cancelled", "cancelling", "removed", "taken off", "never run", "never updated"),
    "stale": ("stale",),
    "outdated": ("outdated",),
    "missing": ("missing",),
}
_COLOURS: Mapping[Sign, Colour] = {"pause": "wait", "stale": "wait", "outdated": "good", "missing": "bad", "": "off"}
_SIGN_OF: Mapping[str, Sign] = {state: sign for sign, states in STATES.items() for state in states}


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
    for size, unit, name in ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < size:
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


_LENGTH = 8
_HEX = 32
_START = re.compile(r"[0-9a-f]{8,32}")


@dataclass(frozen=True)
class IdStart:
    """The beginning of an id, of at least eight characters.

    Attributes:
        text: the beginning, without hyphens, in small letters.
    """

    text: str

    @classmethod
    def of(cls, text: str) -> IdStart | None:
        """Return the beginning that a text is, or `None` for another text."""
        plain = text.replace("-", "").lower()
        return cls(plain) if _START.fullmatch(plain) else None

    @property
    def first(self) -> UUID:
        """The smallest id that begins so."""
        return UUID(self.text.ljust(_HEX, "0"))

    @property
    def last(self) -> UUID:
        """The largest id that begins so."""
        return UUID(self.text.ljust(_HEX, "f"))

    def __str__(self) -> str:
        return self.text


# The id of something in a sentence, after the word that says of what.
ID_IN_TEXT = re.compile(
    r"\b(event|update|decision|run) ([0-9a-f]{8})(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b"
)


def short(number: UUID) -> str:
    """Return the first characters of an id."""
    return str(number)[:_LENGTH]


def shown(text: object, *, keep: str = "") -> str:
    """Return a text with its control characters as escapes, such as `\\x1b`.

    Parameters:
        text: the text, or an object whose `str` is shown.
        keep: characters that stay as they are, such as line breaks.
    """
    written = str(text)
    if written.isprintable():
        return written
    # What changes the direction of text, or cannot be seen, is not printable to Python.
    return "".join(each if each in keep or each.isprintable() else ascii(each)[1:-1] for each in written)


def asset_path(uri: str) -> str:
    """Return the path of an asset's page."""
    return f"/asset?asset={quote(uri, safe='')}"


def event_path(event: UUID) -> str:
    """Return the path of an event's page."""
    return f"/events/{event}"


def consumer_path(name: str) -> str:
    """Return the path of a consumer's page.

    Parameters:
        name: `flow/deployment`.
    """
    flow, _, deployment = name.partition("/")
    return f"/consumers/{quote(flow, safe='')}/{quote(deployment, safe='')}"


def run_path(flow_run: UUID) -> str:
    """Return the path of a flow run's page."""
    return f"/runs/{flow_run}"


LONGEST = timedelta(days=366)


def check_span(name: str, span: object) -> timedelta:
    """Return a span of time, unchanged.

    Parameters:
        name: the option that it was given for.

    Raises:
        InvalidSchedule: it is not a `timedelta` above zero and of at most 366 days.
    """
    if not isinstance(span, timedelta):
        raise InvalidSchedule(f"{name} is {span!r}, not a timedelta", rule="9.16", fix="Write timedelta(hours=6)")
    if span <= timedelta():
        raise InvalidSchedule(
            f"{name} has to be longer than nothing, and {span.total_seconds():g} seconds were given",
            rule="9.16",
            fix="Give a timedelta above zero, such as timedelta(minutes=10)",
        )
    if span > LONGEST:
        raise InvalidSchedule(f"{name} is longer than 366 days", rule="9.16", fix="Give at most timedelta(days=366)")
    return span


def check_count(name: str, n: object) -> int:
    """Return a number of updates or members, unchanged.

    Raises:
        InvalidSchedule: it is not a whole number from 1 on.
    """
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise InvalidSchedule(
            f"{name} has to be a whole number from 1 on, and {n!r} was given", rule="9.16", fix="Write 1, 2, 3 or more"
        )
    return n


def span_in_words(span: timedelta) -> str:
    """Return a span in the largest unit that gives a whole number: "6 h", "1 d", "90 s"."""
    for seconds, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        count, rest = divmod(span.total_seconds(), seconds)
        if count and not rest:
            return f"{count:g} {unit}"
    return f"{span.total_seconds():g} s"


def rounded_in_words(span: timedelta) -> str:
    """Return a span in whole units of the size that a reader wants: "0.4 s", "42 s", "5 min", "3 h", "2 d".

    What is not a whole unit is left out, as in "5 min ago".
    """
    seconds = span.total_seconds()
    if seconds < 10:
        return f"{seconds:.1f} s"
    for size, unit, most in ((1, "s", 120), (60, "min", 7200), (3600, "h", 2 * 86400)):
        if seconds < most:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds // 86400:.0f} d"


def sign_of(state: str, other: Sign = "") -> Sign:
    """Return the sign of a state, in upper or lower case; words may follow it, as in `failed on this data`.

    Parameters:
        other: the sign of a word that is not a state.
    """
    words = state.lower()
    return _SIGN_OF.get(words) or _SIGN_OF.get(words.partition(" ")[0], other)


def colour_of(sign: Sign) -> Colour:
    """Return the colour in which a sign is drawn."""
    return _COLOURS.get(sign, sign)  # type: ignore[return-value]
