"""Read the plain JSON data of a scenario by the types of what it becomes, with errors that name the place in it.

The format is declared as dataclasses: their fields are the keys of an object, and a key that is null is as good as left
out. pydantic would do the same, but importing it takes longer than most simulations do.
"""

from __future__ import annotations

import builtins
import types
import typing
from collections import abc
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Annotated, Any, NoReturn, TypeGuard, TypeVar, cast

from assetflow.errors import InvalidScenario

T = TypeVar("T")

# A value that is built when its step is reached. Its form is checked when the scenario is read. What the contract
# refuses becomes an error only when the value is built, and is a part of the answer.
Deferred = Callable[[], T]

_CONSTANTS = {None: "null", True: "true", False: "false"}


def refuse(message: str, where: str, fix: str = "") -> NoReturn:
    """Raise `InvalidScenario`."""
    raise InvalidScenario(message, where=where, fix=fix)


def read(kind: Any, value: object, where: str) -> Any:
    """Return a value as its type says: a dataclass from an object, a tuple from a list, a moment from ISO 8601.

    Parameters:
        kind: a dataclass, the type of a field, or `Annotated` with the function that reads such a value at its place.
    """
    inner = typing.get_args(kind)
    match typing.get_origin(kind):
        case typing.Annotated:
            return inner[1](value, where)
        case types.UnionType | typing.Union:
            return read(next(each for each in inner if each is not types.NoneType), value, where)
        case typing.Literal:
            return as_choice(value, inner, where)
        case builtins.tuple:
            return tuple(read(inner[0], each, f"{where}[{at}]") for at, each in enumerate(as_list(value, where)))
        case abc.Mapping:
            entries = as_object(value, where).items()
            return {read(inner[0], key, where): read(inner[1], each, f"{where} {key!r}") for key, each in entries}
        case _:
            return _PLAIN[kind](value, where) if kind in _PLAIN else _read_object(kind, value, where)


def _read_object(kind: Any, value: object, where: str) -> Any:
    known, needed = _fields(kind)
    # An object with one important key may be written as the text of this key.
    short = getattr(kind, "short", None)
    data = as_object({short: value} if short and isinstance(value, str) else value, where, known)
    need(data, needed, where)
    given = {
        key: read(known[key], each, f"{where}, {key}")
        for key, each in data.items()
        if each is not None or key in needed
    }
    try:
        return kind(**given)
    except InvalidScenario as error:
        raise error.at(where) from error


@cache
def _fields(kind: type) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the types of a dataclass's fields by name, first those without a default, and the names of these."""
    hints = typing.get_type_hints(kind, include_extras=True)
    needed = tuple(each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING)
    return {name: hints[name] for name in (*needed, *(each.name for each in fields(kind)))}, needed


def main_key(kind: type) -> str:
    """Return the one key that an object of a kind needs."""
    (name,) = _fields(kind)[1]
    return name


def is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def single(value: object) -> tuple[str, object]:
    """Return the key and the value of an object with one key, and `("", None)` for any other value."""
    if is_object(value) and len(value) == 1:
        return next(iter(value.items()))
    return "", None


def as_object(value: object, where: str, known: Collection[str] | None = None) -> Mapping[str, object]:
    """Return a value that is a JSON object, after checking that it has only known keys."""
    if not is_object(value):
        refuse(f"{short(value)} is not an object", where, 'Write an object, as in {"name": "value"}')
    for key in value:
        if not isinstance(cast("object", key), str):
            refuse(f"the key {key!r} is not a text", where, "Put it in quotes")
        if known is not None and key not in known:
            refuse(f"unknown key {key!r}", where, f"Known are {', '.join(known)}")
    return value


def as_list(value: object, where: str) -> list[object]:
    if not isinstance(value, list | tuple):
        refuse(f"{short(value)} is not a list", where, 'Write a list, as in ["one", "two"]')
    return list(cast("list[object]", value))


def _plain(kinds: type | types.UnionType, wanted: str, fix: str) -> Callable[[object, str], Any]:
    """Return what reads a value of a Python type; true and false are not numbers."""

    def read_plain(value: object, where: str) -> Any:
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            refuse(f"{short(value)} is {wanted}", where, fix)
        return value

    return read_plain


as_text: Callable[[object, str], str] = _plain(str, "not a text", "Write a text, in quotes")
as_bool: Callable[[object, str], bool] = _plain(bool, "neither true nor false", "Write true or false")
_as_number = _plain(int | float, "not a number", "Write a number, as in 60")


def as_choice(value: object, choices: Collection[object], where: str) -> object:
    if not isinstance(value, str | bool) or value not in choices:
        allowed = ", ".join(each if isinstance(each, str) else short(each) for each in choices)
        refuse(f"{short(value)} is not allowed here", where, f"Write {'' if len(choices) == 1 else 'one of '}{allowed}")
    return value


def as_time(value: object, where: str) -> datetime:
    """Return a time in UTC from ISO 8601; without an offset it is UTC already."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(as_text(value, where))
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        refuse(f"{short(value)} is not a time", where, "Write 2026-01-01T00:00:00Z")


def _as_given(value: object, _where: str) -> object:
    return value


def _as_span(value: object, _where: str) -> timedelta:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return timedelta(seconds=value)
    return cast("timedelta", value)


_PLAIN: Mapping[Any, Callable[[object, str], object]] = {
    object: _as_given,
    str: as_text,
    bool: as_bool,
    float: _as_number,
    datetime: as_time,
}
# Seconds, and whole numbers; whatever else is written, the consumer refuses that it is given for.
Span = Annotated[timedelta, _as_span]
Whole = Annotated[int, _as_given]


def need(data: Mapping[str, object], keys: tuple[str, ...], where: str) -> None:
    """Refuse an object in which one of these keys is missing."""
    for key in keys:
        if key not in data:
            refuse(f"{key!r} is missing", where, f"Needed here: {', '.join(keys)}")


def short(value: object) -> str:
    """Return a value for a message, cut after 60 characters."""
    text = _CONSTANTS[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
