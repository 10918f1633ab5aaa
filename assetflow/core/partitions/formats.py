"""Reading back the keys of periods that `strptime` cannot read: weeks and quarters.

Python writes `%V` but does not read it without the weekday, and `{quarter}` is no directive at all. So a format becomes
a pattern with one named group for each directive.
"""

from __future__ import annotations

import re
from collections import Counter

from assetflow.errors import InvalidPartition

_PLACEHOLDER = re.compile(r"%%|%(?P<directive>[A-Za-z])|\{(?P<name>[^{}]*)\}")
_DIGITS = {"Y": r"\d{4}", "j": r"\d{3}", **dict.fromkeys("mdHMSVUWy", r"\d{2}"), "quarter": "[1-4]"}


def check_format(text: str, *, braces: bool) -> None:
    """Refuse a format that could not be read back.

    Parameters:
        text: a format for `strftime`.
        braces: whether `{quarter}` is replaced in it, too.

    Raises:
        InvalidPartition: a directive stands there twice, or braces have no name in them.
    """
    names = _names(text, braces=braces)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidPartition(
            f"The key format {text!r} uses {_spelled(twice[0])} twice", fix="Use each directive once.", rule="5.1"
        )
    unnamed = [name for name in names if not name.isidentifier()]
    if unnamed:
        raise InvalidPartition(
            f"The key format {text!r} has {{{unnamed[0]}}} in it", fix="Write {quarter} for the quarter.", rule="5.1"
        )


def read_numbers(key: str, text: str, *, braces: bool) -> dict[str, int] | None:
    """The numbers that the directives of a format have in a key, by the directive's letter; None if it does not fit."""
    pattern: list[str] = []
    end = 0
    for match in _PLACEHOLDER.finditer(text):
        pattern.append(re.escape(text[end : match.start()]))
        name = match["directive"] or (match["name"] if braces else None)
        literal = re.escape("%" if match[0] == "%%" else match[0])
        pattern.append(f"(?P<{name}>{_DIGITS.get(name, '.+?')})" if name else literal)
        end = match.end()
    pattern.append(re.escape(text[end:]))
    found = re.fullmatch("".join(pattern), key, re.ASCII)
    return found and {name: int(value) for name, value in found.groupdict().items() if name in _DIGITS}


def _names(text: str, *, braces: bool) -> list[str]:
    matches = [match for match in _PLACEHOLDER.finditer(text) if match[0] != "%%"]
    return [match["directive"] or match["name"] for match in matches if match["directive"] or braces]


def _spelled(name: str) -> str:
    return f"%{name}" if len(name) == 1 else f"{{{name}}}"
