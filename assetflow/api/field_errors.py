"""Say in words what is wrong with the fields of a request, and what they have to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SHOWN = 100
_LONGEST_FIX = 300
_READ_ON = "Read in /api/openapi.json what the fields of this request may hold"
_OBJECT = ("is not an object", 'Send a JSON object, as in {{"name": "value"}}')
_LIST = ("is not a list", "Send a JSON list, as in [1, 2]")
_TEXT = ("is not a text", "Send a text in double quotes")
_WHOLE = ("is not a whole number", "Send a whole number, as in 12")
_NUMBER = ("is not a number", "Send a number, as in 1.5")
_BOOL = ("is neither true nor false", "Send true or false")
_TIME = ("is not a time", "Write a time as in 2026-01-01T00:00:00Z")
_ID = ("is not a UUID", "Write an id as in 01890a5d-ac96-774b-bcce-b302099a8057")

# What Pydantic calls an error, with our words for it and what to do. `{…}` is what it tells of the error.
_WORDS: Mapping[str, tuple[str, str]] = {
    "missing": ("is missing", "Send it, too"),
    "json_invalid": ("is not JSON: {error}", "Send one JSON document in UTF-8"),
    "model_attributes_type": _OBJECT,
    "model_type": _OBJECT,
    "dict_type": _OBJECT,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "string_type": _TEXT,
    "string_too_long": ("is longer than {max_length} characters", "Make it shorter"),
    "string_too_short": ("is shorter than {min_length} characters", "Make it longer"),
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": ("has too many digits", "Send a smaller number"),
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": ("is not a finite number", "Send a finite number"),
    "greater_than_equal": ("is less than {ge}", "Send a number that is at least {ge}"),
    "greater_than": ("is not more than {gt}", "Send a number that is more than {gt}"),
    "less_than_equal": ("is more than {le}", "Send a number that is at most {le}"),
    "less_than": ("is not less than {lt}", "Send a number that is less than {lt}"),
    "bool_type": _BOOL,
    "bool_parsing": _BOOL,
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "datetime_object_invalid": _TIME,
    "uuid_type": _ID,
    "uuid_parsing": _ID,
    "literal_error": ("is not allowed here", "Write {expected}"),
    "enum": ("is not allowed here", "Write {expected}"),
    "extra_forbidden": ("is unknown", "Leave it out; /api/openapi.json has the names of the fields"),
}


def field_errors(found: Sequence[Any]) -> list[dict[str, object]]:
    """Return pydantic's errors without the values, which may be secret or not be valid text."""
    return [{"loc": _place(each), "msg": _words(each)[0][:500], "type": str(each["type"])} for each in found[:_SHOWN]]


def field_fix(found: Sequence[Any]) -> str:
    """Return what to do about the first of pydantic's errors."""
    return _words(found[0])[1] if found else _READ_ON


def told(place: str, message: str) -> str:
    """Return a sentence with a place and what is wrong there."""
    return f"{place} {message}" if message[:1].islower() else f"{place}: {message}"


def _words(error: Any) -> tuple[str, str]:
    """Return what happened, and what to do about it."""
    told: Mapping[str, object] = error.get("ctx") or {}
    kind = str(error["type"])
    if told.get("min_length") == 1:
        return "is empty", "Fill it, or leave it out"
    if kind in ("too_long", "too_short"):
        return _length(error, told)
    if kind in _WORDS:
        message, fix = _WORDS[kind]
        return message.format(**told), fix.format(**told)[:_LONGEST_FIX]
    fix = told.get("fix") or _READ_ON
    return str(error["msg"]), str(fix)


def _length(error: Any, told: Mapping[str, object]) -> tuple[str, str]:
    unit = "characters" if isinstance(error.get("input"), str) else "items"
    if error["type"] == "too_long":
        return f"has more than {told['max_length']} {unit}", "Send less of them"
    return f"has less than {told['min_length']} {unit}", "Send more of them"


def _place(error: Any) -> list[str | int]:
    # The number in the place of bad JSON counts characters; it is not the place of a field.
    loc = error["loc"][:1] if error["type"] == "json_invalid" else error["loc"]
    return [_part(part) for part in loc]


def _part(part: object) -> str | int:
    return part if isinstance(part, int) else str(part).encode("ascii", "backslashreplace").decode()[:200]
