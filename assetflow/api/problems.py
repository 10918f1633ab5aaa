"""Answer errors with problem documents (RFC 9457), which carry the parts of an `AssetflowError`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from assetflow.api.requests import Json
from assetflow.errors import (
    AssetflowError,
    Conflict,
    LedgerError,
    PrefectRefused,
    PrefectUnreachable,
    TooLarge,
    UnknownAsset,
    UnknownBackfill,
    UnknownConsumer,
    UnknownEvent,
    UnknownWatcher,
    WatchingFailed,
    WrongSignature,
)

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
    return [
        (part if isinstance(part, int) else str(part).encode("ascii", "backslashreplace").decode()[:200])
        for part in loc
    ]


logger = logging.getLogger("assetflow.api")

MEDIA_TYPE = "application/problem+json"
_STATUS: tuple[tuple[type[AssetflowError], int], ...] = (
    (WrongSignature, 401),
    (UnknownAsset, 404),
    (UnknownConsumer, 404),
    (UnknownBackfill, 404),
    (UnknownEvent, 404),
    (UnknownWatcher, 404),
    (Conflict, 409),
    (PrefectRefused, 409),
    (TooLarge, 413),
    (LedgerError, 503),
    (WatchingFailed, 503),
    (PrefectUnreachable, 503),
)


# What happened, and what to do about it, where Starlette only says the status.
_OF_STATUS: Mapping[int, tuple[str, str]] = {
    400: ("the request cannot be read", "Send a JSON body, in UTF-8"),
    404: ("there is nothing at this address", "GET /api/openapi.json lists the addresses"),
    405: ("this address does not support this method", "GET /api/openapi.json lists the methods of each address"),
    413: ("the body is too large", "Send it in several parts"),
}


class FieldError(BaseModel):
    """The error in one field."""

    loc: list[str | int] = Field(description="The place: body, query or path, then the names down to the field.")
    msg: str
    type: str


class Problem(BaseModel):
    """A problem: the reason, the place, and what to do about it (RFC 9457)."""

    type: str = Field(description="The kind of problem: `urn:assetflow:` and its code.")
    title: str
    status: int
    detail: str
    code: str
    where: str | None = Field(description="The place of the error, such as `query.limit` or `body.events`.")
    fix: str | None = Field(description="What to do.")
    rule: str | None = Field(description="The rule of the contract that is broken.")
    errors: list[FieldError] = Field(description="For a 422: each wrong field, with the reason.")


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses for the problems of a route, with those that every route shares."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in sorted({400, 401, 403, 429, 503, *statuses})
    }


def problem(
    status: int,
    detail: str,
    *,
    code: str = "",
    where: str = "",
    fix: str = "",
    rule: str | None = None,
    errors: Sequence[Mapping[str, object]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Json:
    """Return a problem document as the response."""
    phrase = HTTPStatus(status).phrase
    code = code or phrase.lower().replace(" ", "-")
    document: dict[str, object] = {
        "type": f"urn:assetflow:{code}",
        "title": phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "where": where or None,
        "fix": fix or None,
        "rule": rule,
        "errors": errors or [],
    }
    return Json(document, status, dict(headers or {}), media_type=MEDIA_TYPE)


def problem_of(error: AssetflowError) -> Json:
    """Return the response for an error. An error without a status of its own is the client's fault: 422."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 422)
    headers = {"retry-after": "1"} if status == 503 else None
    errors = None
    if status == 422:
        place: list[str] = [part for part in error.where.split(".") if part] or ["body"]
        errors = [{"loc": place, "msg": error.message, "type": error.code}]
    return problem(
        status,
        error.message,
        code=error.code,
        where=error.where,
        fix=error.fix,
        rule=error.rule,
        errors=errors,
        headers=headers,
    )


def add_handlers(app: FastAPI) -> None:
    """Answer every failure of a route with a problem document, never with a traceback."""

    @app.exception_handler(AssetflowError)
    async def _ours(_request: Request, error: AssetflowError) -> Json:  # pyright: ignore[reportUnusedFunction]
        return problem_of(error)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_request: Request, error: RequestValidationError) -> Json:  # pyright: ignore[reportUnusedFunction]
        errors = field_errors(error.errors())
        first = errors[0] if errors else {"loc": ["body"], "msg": "cannot be read"}
        place = ".".join(map(str, cast("list[object]", first["loc"])))
        fix = field_fix(error.errors())
        return problem(422, told(place, str(first["msg"])), code="invalid-request", where=place, fix=fix, errors=errors)

    @app.exception_handler(HTTPException)
    async def _http(_request: Request, error: HTTPException) -> Json:  # pyright: ignore[reportUnusedFunction]
        message, fix = _OF_STATUS.get(error.status_code) or (str(error.detail), "")
        return problem(error.status_code, message, fix=fix, headers=error.headers)

    @app.exception_handler(ClientDisconnect)
    async def _gone(_request: Request, _error: ClientDisconnect) -> Json:  # pyright: ignore[reportUnusedFunction]
        # Nobody reads it. Without it, strangers could fill the log with tracebacks.
        return problem(400, "the client has closed the connection before the end of the body")

    @app.exception_handler(Exception)
    async def _bug(request: Request, error: Exception) -> Json:  # pyright: ignore[reportUnusedFunction]
        logger.error("%s %s failed unexpectedly", request.method, request.url.path, exc_info=error)
        return problem(500, "assetflow failed unexpectedly; its log has the full report", code="unexpected")
