"""Spans of elapsed time and counts, as conditions and options take them. Contract 9.16."""

from __future__ import annotations

from datetime import timedelta

from assetflow.errors import InvalidSchedule

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
