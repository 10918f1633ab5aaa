"""Key formats: check them, and read the keys of weeks and quarters back.

`strptime` cannot read those keys: it reads `%V` only together with a weekday, and `{quarter}` is not a directive.
`read_numbers` turns such a format into a regular expression with one named group for each directive.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime

from assetflow.errors import AssetflowError, InvalidPartition

_PLACEHOLDER = re.compile(r"%%|%(?P<directive>[A-Za-z])|\{(?P<name>[^{}]*)\}")
_DIRECTIVE = re.compile(r"%[-_0^#:EO]?(?P<letter>.?)", re.DOTALL)
# The directives that Python documents, and those that the C libraries of Linux and macOS share.
_WRITTEN = frozenset("aAbBcCdDeFgGfhHIjklmMnpRrsStTuUVwWxXyYzZ%")
_EXAMPLE = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)
_DIGITS = {"Y": r"\d{4}", "j": r"\d{3}", **dict.fromkeys("mdHMSVUWy", r"\d{2}"), "quarter": "[1-4]"}


def check_format(text: str, *, braces: bool) -> None:
    """Refuse a format whose keys could not be read back.

    Parameters:
        text: a format for `strftime`.
        braces: True if the format may have `{quarter}` in it.

    Raises:
        InvalidPartition: the format has a directive twice, or braces without a name in them.
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


def check_directives(text: str, option: str, error: type[AssetflowError] = InvalidPartition) -> None:
    """Refuse a format with a directive that no platform's `strftime` knows.

    Parameters:
        option: what the error calls the format.
        error: the class of the error to raise.

    Raises:
        error: the format has such a directive, as in `%Q`.
    """
    for match in _DIRECTIVE.finditer(text):
        if match["letter"] not in _WRITTEN:
            raise error(
                f"The {option} {text!r} has {match[0]!r} in it, which is not a directive",
                fix="Use directives such as %Y, %m, %d and %H, and %% for a percent sign.",
                rule="5.1",
            )


def check_readable(text: str, option: str) -> None:
    """Refuse a format with which no key can be read.

    Parameters:
        option: what the error calls the format.

    Raises:
        InvalidPartition: `strptime` does not know one of the directives, or cannot read a time with them.
    """
    try:
        datetime.strptime(_EXAMPLE.strftime(text), text)  # noqa: DTZ007  only tried
    except (ValueError, re.error) as cause:
        raise InvalidPartition(
            f"No key can be read with the {option} {text!r}: {cause}",
            fix="Use directives such as %Y, %m, %d and %H, each once.",
            rule="5.1",
        ) from cause


def read_numbers(key: str, text: str, *, braces: bool) -> dict[str, int] | None:
    """Return the numbers in a key by the letters of the format's directives, or `None` if the key does not fit.

    Parameters:
        text: the format, as for `strftime`.
        braces: True if `{quarter}` in the format stands for the number of a quarter.
    """
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
