"""Cron expressions in words."""

from __future__ import annotations

import re

from assetflow.core.time.cron import Cron
from assetflow.core.time.cron_expression import MONTHS, WEEKDAYS

_WEEKDAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def cron_in_words(cron: Cron) -> str:
    """Return a cron in words, as in "at 00:00 every day (Europe/Berlin)"; one without short words as its text."""
    minute, hour, day, month, weekday = cron.fields
    when = _time(minute, hour)
    days = _days(day, month, weekday)
    if when is not None and when.startswith("every"):
        days = days and days.removeprefix("every day").strip()
    if when is None or days is None:
        return f"at the times of the cron {cron.expression!r} ({cron.timezone})"
    return f"{' '.join(part for part in (when, days) if part)} ({cron.timezone})"


def _time(minute: str, hour: str) -> str | None:
    step = re.fullmatch(r"\*/(\d+)", minute)
    if hour == "*" and (minute == "*" or step is not None):
        return f"every {step[1]} minutes" if step is not None and int(step[1]) > 1 else "every minute"
    if not minute.isdecimal():
        return None
    if hour == "*":
        return "every hour" if int(minute) == 0 else f"every hour at minute {int(minute)}"
    hours = hour.split(",")
    if all(text.isdecimal() for text in hours):
        return "at " + _list([f"{int(text):02}:{int(minute):02}" for text in hours])
    return None


def _days(day: str, month: str, weekday: str) -> str | None:
    """Return the days in words, or `None` if there are no short ones."""
    months = "" if month == "*" else _named(month, MONTHS, _MONTH_NAMES, first=1)
    if months is None or (day != "*" and weekday != "*"):
        return None
    within = f" in {months}" if months else ""
    if day == "*" and weekday == "*":
        return f"every day{within}"
    if weekday != "*":
        names = _named(weekday, WEEKDAYS, _WEEKDAY_NAMES, first=0)
        return None if names is None else f"on {names}{within}"
    if not day.isdecimal():
        return None
    return f"on day {int(day)} of {months or 'every month'}"


def _named(text: str, short: tuple[str, ...], long: tuple[str, ...], *, first: int) -> str | None:
    """Return a list of values, or one range, with their names, or `None` for any other field."""
    lowest, dash, highest = text.partition("-")
    values = [_number(term, short, first) for term in ((lowest, highest) if dash else text.split(","))]
    names = [long[value - first] for value in values if value is not None]
    if len(names) < len(values):
        return None
    return " to ".join(names) if dash else _list(names)


def _number(text: str, short: tuple[str, ...], first: int) -> int | None:
    if text in short:
        return short.index(text) + first
    return int(text) if text.isdecimal() else None


def _list(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
