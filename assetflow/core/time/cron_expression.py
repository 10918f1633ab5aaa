"""The text of a cron expression: its five fields, and the numbers that each allows (contract 6.2).

croniter reads the fields. Day of month and day of week are alternatives if both are restricted, and anything but a lone
`*` restricts: `*/2` too. (Vixie cron takes `*/2` for a star there; croniter, Airflow and Prefect do not.)

A range runs forward: `22-2` is refused, as in Vixie cron, because it is more often a slip than a night. A range of
names may end with `sun`, the last day of the week as well as the first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from croniter import croniter

from assetflow.errors import InvalidTimetable

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_TERM = re.compile(r"(\*|(?P<first>[0-9a-z]+)(-(?P<last>[0-9a-z]+))?)(/(?P<step>[0-9]+))?", re.ASCII)


@dataclass(frozen=True)
class _Field:
    """One of the five fields: its name, its range of numbers, and the names that stand for numbers."""

    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()

    def allowed(self) -> str:
        numbers = f"{self.lowest}-{self.highest}"
        words = f", {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"{numbers}{words}, lists (1,3), ranges (1-3) and steps (*/2 or 1-5/2)"

    def runs_backward(self, term: re.Match[str]) -> bool:
        """Return True if a term is a range whose end lies before its start."""
        if term["last"] is None:
            return False
        # A range of weekdays may end with Sunday.
        last = 7 if term["last"] == WEEKDAYS[0] else self._number(term["last"])
        return last < self._number(term["first"])

    def _number(self, word: str) -> int:
        if word in self.names:
            # Months count from 1, days of the week from 0.
            return self.names.index(word) + self.lowest
        return int(word)


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, MONTHS),
    _Field("day of week", 0, 7, WEEKDAYS),
)


def read_fields(expression: object) -> tuple[tuple[str, ...], list[frozenset[int]]]:
    """Return the five fields of an expression in lower case, and the numbers that each allows.

    Raises:
        InvalidTimetable: the expression does not have five fields, or one of them cannot be read.
    """
    texts = _split(expression)
    for text, kind in zip(texts, _FIELDS, strict=True):
        _check_field(expression, text, kind)
    return texts, [_numbers_of(text, kind) for text, kind in zip(texts, _FIELDS, strict=True)]


def _split(expression: object) -> tuple[str, ...]:
    text = expression.strip().lower() if isinstance(expression, str) else ""
    fields = tuple(MACROS.get(text, text).split())
    if len(fields) == len(_FIELDS):
        return fields
    raise InvalidTimetable(
        f"The cron {expression!r} has {len(fields)} field{'' if len(fields) == 1 else 's'} instead of 5",
        fix="Give minute, hour, day of month, month and day of week, such as '30 6 * * 1-5', or one of "
        f"{', '.join(MACROS)}.",
        rule="6.2",
    )


def _check_field(expression: object, text: str, kind: _Field) -> None:
    terms = [_TERM.fullmatch(term) for term in text.split(",")]
    readable = all(term is not None and int(term["step"] or 1) <= kind.highest for term in terms)
    try:
        # croniter also reads L, W, # and H, which the contract does not have. `_TERM` keeps out the signs, this check
        # the letters. Each field is tried alone, so that the error can name it.
        words = re.findall("[a-z]+", text)
        if not readable or any(word not in kind.names for word in words):
            raise ValueError(text)
        _numbers_of(text, kind)
    except ValueError as cause:
        raise InvalidTimetable(
            f"The {kind.name} field {text!r} of the cron {expression!r} cannot be read",
            fix=f"Allowed are {kind.allowed()}.",
            rule="6.2",
        ) from cause
    for term in terms:
        if term is not None and kind.runs_backward(term):
            raise InvalidTimetable(
                f"The range {term[0]!r} in the {kind.name} field of the cron {expression!r} runs backwards",
                fix=f"Write the smaller number first, or two ranges: {term['first']}-{kind.highest},"
                f"{kind.lowest}-{term['last']}.",
                rule="6.2",
            )


def _numbers_of(text: str, kind: _Field) -> frozenset[int]:
    position = _FIELDS.index(kind)
    fields = ["*"] * len(_FIELDS)
    fields[position] = text
    found = croniter.expand(" ".join(fields))[0][position]
    if "*" in found:
        last = kind.highest - 1 if kind.names == WEEKDAYS else kind.highest
        return frozenset(range(kind.lowest, last + 1))
    return frozenset(int(value) for value in found)
