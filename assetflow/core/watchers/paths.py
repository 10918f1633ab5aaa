"""Dotted paths into JSON data: `payload.detail` is the field `detail` of the field `payload`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from assetflow.errors import InvalidWatcher

MISSING = object()


def check_path(path: object, option: str) -> str:
    """Return a dotted path that an option of a trigger was given.

    Raises:
        InvalidWatcher: it is not a text, or a part of it is empty.
    """
    if not isinstance(path, str) or not all(path.split(".")):
        raise InvalidWatcher(
            f"{option} is {path!r}, which is not a dotted path", fix=f'Write {option}="payload.date"', rule="10.2"
        )
    return path


def value_at(data: object, path: str) -> object:
    """Return the value at a dotted path in JSON data, or `MISSING`."""
    for name in path.split("."):
        if not isinstance(data, Mapping):
            return MISSING
        data = cast("Mapping[str, object]", data).get(name, MISSING)
    return data


def last_name(path: str) -> str:
    """Return the last name of a dotted path."""
    return path.rpartition(".")[2]
