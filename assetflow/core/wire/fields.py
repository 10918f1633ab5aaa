"""Read single fields of JSON objects, with errors that name the field and its value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar, cast
from uuid import UUID

from assetflow.core.json_data import fit_json
from assetflow.errors import InvalidEvent

Json = Mapping[str, object]
T = TypeVar("T")

_SHOWN = 80


def text(value: object, field: str, where: str) -> str:
    """Return a field that has to be a text.

    Parameters:
        field: what the error calls the field.
        where: the place that the error names.

    Raises:
        InvalidEvent: the field is missing or is not a text.
    """
    return _needed(value if isinstance(value, str) else None, value, field, "a text", where)


def optional_text(value: object, field: str, where: str) -> str | None:
    """Return a field that is a text or `None`. Raises as `text`."""
    return None if value is None else text(value, field, where)


def uuid(value: object, field: str, where: str) -> UUID:
    """Return a field that has to be a UUID. Raises as `text`."""
    return _needed(uuid_or_none(value), value, field, "a UUID", where)


def uuid_or_none(value: object) -> UUID | None:
    """Return the UUID that a value is or spells, or `None`."""
    try:
        return value if isinstance(value, UUID) else UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def time(value: object, field: str, where: str) -> datetime:
    """Return a field that has to be a time, in UTC. Raises as `text`."""
    return _needed(time_or_none(value), value, field, "a time", where, fix="Write 2026-01-01T00:00:00Z")


def time_or_none(value: object) -> datetime | None:
    """Return the time that a text spells, in UTC, or `None`."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is None:
            return None
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        # In UTC, the time can lie outside of the years 1 to 9999.
        return None


def mapping(value: object, field: str, where: str) -> Json:
    """Return a field that is a JSON object, `{}` for `None`. Raises as `text`."""
    if value is None:
        return {}
    found = cast(Json, value) if isinstance(value, Mapping) else None
    return _needed(found, cast(object, value), field, "a JSON object", where)


def mapping_or_empty(value: object) -> Json:
    """Return a value that is a JSON object, and `{}` for any other."""
    return cast(Json, value) if isinstance(value, Mapping) else {}


def text_or_empty(value: object) -> str:
    """Return a value that is a text, and "" for any other."""
    return value if isinstance(value, str) else ""


def uuid_text(value: UUID | None) -> str | None:
    """Return a UUID as it is written; `None` for `None`."""
    return None if value is None else str(value)


def without_empty(data: dict[str, object], keep: frozenset[str] = frozenset()) -> dict[str, object]:
    """Return the fields that are not empty, and those in `keep`."""
    return {key: value for key, value in data.items() if key in keep or value not in (None, "", [], {})}


def abridged(value: object) -> str:
    """Return a value for an error: JSON in ASCII, cut after 80 characters."""
    written = json.dumps(fit_json(value))
    return written if len(written) <= _SHOWN else f"{written[:_SHOWN]}…"


def _needed(found: T | None, value: object, field: str, wanted: str, where: str, fix: str = "") -> T:
    """Return what was found in a value; without it, refuse the value."""
    if found is not None:
        return found
    message = f"{field} is missing" if value is None else f"{field} is {abridged(value)}, not {wanted}"
    raise InvalidEvent(message, where=where, rule="2.2", fix=fix)
