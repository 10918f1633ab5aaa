"""Read the plain JSON data of a scenario, with errors that name the place in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import NoReturn, TypeGuard, TypeVar, cast

from assetflow.errors import InvalidScenario

T = TypeVar("T")

# A value that is built when its step is reached. Its form is checked when the scenario is read. What the contract
# refuses becomes an error only when the value is built, and is a part of the answer.
Deferred = Callable[[], T]

_CONSTANTS = {None: "null", True: "true", False: "false"}


def refuse(message: str, where: str, fix: str = "") -> NoReturn:
    """Raise `InvalidScenario`."""
    raise InvalidScenario(message, where=where, fix=fix)


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
    data = value
    for key in data:
        if not isinstance(cast("object", key), str):
            refuse(f"the key {key!r} is not a text", where, "Put it in quotes")
    if known is not None:
        for key in data:
            if key not in known:
                refuse(f"unknown key {key!r}", where, f"Known are {', '.join(known)}")
    return data


def as_list(value: object, where: str) -> list[object]:
    if not isinstance(value, list | tuple):
        refuse(f"{short(value)} is not a list", where, 'Write a list, as in ["one", "two"]')
    return list(cast("list[object]", value))


def as_text(value: object, where: str) -> str:
    if not isinstance(value, str):
        refuse(f"{short(value)} is not a text", where, "Write a text, in quotes")
    return value


def as_bool(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        refuse(f"{short(value)} is neither true nor false", where, "Write true or false")
    return value


def as_number(value: object, where: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(f"{short(value)} is not a number", where, "Write a number, as in 60")
    return value


def as_choice(value: object, choices: Collection[str], where: str) -> str:
    if not isinstance(value, str) or value not in choices:
        refuse(f"{short(value)} is not allowed here", where, f"Write one of {', '.join(choices)}")
    return value


def as_time(value: object, where: str) -> datetime:
    """Return a time in UTC from ISO 8601; without an offset it is UTC already."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(as_text(value, where))
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        refuse(f"{short(value)} is not a time", where, "Write 2026-01-01T00:00:00Z")


def as_span(value: object) -> timedelta:
    """Return seconds as a span; whatever else it is, the consumer that it is given for refuses."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return timedelta(seconds=value)
    return cast("timedelta", value)


def as_count(value: object) -> int:
    """Return a number; whether it is a whole one, and large enough, the consumer says that it is given for."""
    return cast("int", value)


def as_exactly(value: object, keys: tuple[str, ...], where: str) -> Mapping[str, object]:
    """Return an object with exactly these keys."""
    data = as_object(value, where, keys)
    need(data, keys, where)
    return data


def need(data: Mapping[str, object], keys: tuple[str, ...], where: str) -> None:
    """Refuse an object in which one of these keys is missing."""
    for key in keys:
        if key not in data:
            refuse(f"{key!r} is missing", where, f"Needed here: {', '.join(keys)}")


def short(value: object) -> str:
    """Return a value for a message, cut after 60 characters."""
    text = _CONSTANTS[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
