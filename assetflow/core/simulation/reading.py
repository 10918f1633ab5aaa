"""Reading plain JSON data with its place at hand, so that every complaint says where."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import NoReturn, TypeGuard, TypeVar, cast

from assetflow.errors import InvalidScenario

T = TypeVar("T")

# What is built only when its place in the scenario is reached. Its form was checked when the file was read; what the
# contract refuses shows when it is built, and belongs into the answer.
Deferred = Callable[[], T]


def refuse(message: str, where: str, fix: str = "") -> NoReturn:
    raise InvalidScenario(message, where=where, fix=fix)


def is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def single(value: object) -> tuple[str, object]:
    """Word and content of an object with one key; an empty word for anything else."""
    if is_object(value) and len(value) == 1:
        return next(iter(value.items()))
    return "", None


def as_object(value: object, where: str, known: Collection[str] | None = None) -> Mapping[str, object]:
    """A JSON object, with no other keys than the known ones."""
    if not is_object(value):
        refuse(f"{short(value)} is no object", where)
    data = value
    for key in data:
        if not isinstance(cast("object", key), str):
            refuse(f"the key {key!r} is no text", where, "Put it in quotes")
    if known is not None:
        for key in data:
            if key not in known:
                refuse(f"unknown key {key!r}", where, f"Known are {', '.join(known)}")
    return data


def as_list(value: object, where: str) -> list[object]:
    if not isinstance(value, list | tuple):
        refuse(f"{short(value)} is no list", where)
    return list(cast("list[object]", value))


def as_text(value: object, where: str) -> str:
    if not isinstance(value, str):
        refuse(f"{short(value)} is no text", where)
    return value


def as_bool(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        refuse(f"{short(value)} is neither true nor false", where)
    return value


def as_number(value: object, where: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(f"{short(value)} is no number", where)
    return value


def as_choice(value: object, choices: Collection[str], where: str) -> str:
    if not isinstance(value, str) or value not in choices:
        refuse(f"{short(value)} is not known here", where, f"Write one of {', '.join(choices)}")
    return value


def as_time(value: object, where: str) -> datetime:
    """A time in ISO 8601; without an offset it is UTC."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(as_text(value, where))
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        refuse(f"{short(value)} is no time", where, "Write 2026-01-01T00:00:00Z")


def short(value: object) -> str:
    """A value as it fits into a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
