"""The JSON data that an update may hold (contract 2.7): artifacts, the ledger, flow runs and Prefect can carry it.

Tasks, the API, the CLI and Prefect's events all pass their extras through `check_json` before they are recorded. Data
that only accompanies an update (metrics, origin, parameters of the run) must never stop one: `fit_json` changes it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import date
from numbers import Integral, Rational, Real
from pathlib import PurePath
from typing import Any, NoReturn, Self, cast
from uuid import UUID

from assetflow.errors import InvalidEvent

LARGEST_INTEGER = 2**63 - 1
MOST_LEVELS = 50
RULE = "2.7"

REPLACEMENT = "\ufffd"
_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN = 60


def check_json(data: object, path: str, *, where: str = "") -> object:
    """Return a copy of `data` as plain JSON data.

    Integers lie within ±(2^63 - 1), numbers are finite, text is valid Unicode without NUL, and lists and objects are
    nested at most 50 levels deep. Keys that are numbers, true, false or None become the text that JSON writes for them.
    Numbers of NumPy become numbers, dates and times text in ISO 8601, paths and UUIDs text.

    Parameters:
        path: what the error calls the data, such as "extra". It names a value in it as "extra.files[3].size".
        where: the place that the error names: a task, an asset, an option.

    Raises:
        InvalidEvent: a value in the data breaks contract 2.7.
    """
    return _Check(where).value(data, path, 1)


def fit_json(data: object) -> object:
    """Return a copy of `data` as JSON data that contract 2.7 allows, with text in place of what it forbids.

    A number that is too large or not finite becomes text, a character that is not allowed becomes U+FFFD, and a list or
    object deeper than 50 levels becomes "…".
    """
    return _fitted(data, 1)


def fit_object(data: Mapping[str, object]) -> dict[str, object]:
    """Do what `fit_json` does, for an object."""
    return cast("dict[str, object]", fit_json(data))


def is_plain_text(text: str) -> bool:
    """True if the text is valid Unicode without NUL and lone surrogates."""
    return _UNSAFE.search(text) is None


def fit_text(text: str) -> str:
    """Return the text with U+FFFD in place of each NUL and each lone surrogate."""
    if is_plain_text(text):
        return text
    # A pair of surrogates is one character.
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _UNSAFE.sub(REPLACEMENT, joined)


def fit_number(value: object) -> int | float | None:
    """Return the number that `value` is, or `None` if it is not one that contract 2.7 allows."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float):
        return float.__float__(value) if math.isfinite(value) else None
    return int(value) if abs(value) <= LARGEST_INTEGER else None


class _Check:
    """A walk over JSON data that raises at the first value that breaks contract 2.7."""

    def __init__(self, where: str) -> None:
        self._where = where

    def value(self, value: object, path: str, level: int) -> object:
        match value:
            case None | bool():
                return value
            case str():
                return self._text(value, path)
            case int():
                return self._integer(value, path)
            case float():
                return self._number(value, path)
            case Mapping() | list() | tuple() if level > MOST_LEVELS:
                raise self._refused(f"{_cut(path)} is nested more than {MOST_LEVELS} levels deep", "Make it flatter")
            case Mapping():
                return self._object(cast("Mapping[object, object]", value), path, level)
            case Integral():
                return self._integer(int(value), path)
            case Real() if not isinstance(value, Rational):
                return self._number(float(value), path)
            case date():
                return value.isoformat()
            case PurePath() | UUID():
                return self._text(str(value), path)
            case list() | tuple():
                items = cast("list[object]", value)
                return [self.value(each, f"{path}[{at}]", level + 1) for at, each in enumerate(items)]
            case _:
                kind = type(value).__name__
                raise self._refused(
                    f"{path} is not JSON: it is of the type {kind}", "Write it as text, a number, a list or an object"
                )

    def _object(self, data: Mapping[object, object], path: str, level: int) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in data.items():
            name = self._key(key, path)
            if name in found:
                raise self._refused(f"{path} has two keys that both become {json.dumps(name)}", "Leave one of them out")
            found[name] = self.value(value, _below(path, name), level + 1)
        return found

    def _key(self, key: object, path: str) -> str:
        if isinstance(key, str):
            if not is_plain_text(key):
                raise self._refused(
                    f"{path} has the key {json.dumps(key[:_SHOWN])}, which is not valid text",
                    "Leave out NUL and lone surrogates",
                )
            return str.__str__(key)
        if key is None or isinstance(key, bool | int | float):
            return json.dumps(self.value(key, f"the key of {path}", 1))
        raise self._refused(f"{path} is not JSON: it has a key that is a {type(key).__name__}", "Use text as keys")

    def _text(self, text: str, path: str) -> str:
        if found := _UNSAFE.search(text):
            code = ord(found[0])
            what = "the character NUL" if code == 0 else f"the lone surrogate U+{code:04X}"
            raise self._refused(
                f"{path} holds {what}, which is not valid text",
                'Leave it out, or replace it: text.encode("utf-8", "replace").decode()',
            )
        return str.__str__(text)

    def _integer(self, value: int, path: str) -> int:
        if abs(value) > LARGEST_INTEGER:
            raise self._refused(
                f"{path} is an integer beyond 64 bits; integers lie within ±{LARGEST_INTEGER}", "Write it as text"
            )
        return int(value)

    def _number(self, value: float, path: str) -> float:
        if not math.isfinite(value):
            raise self._refused(
                f"{path} is not JSON: it is {_name_of(value)}, which is not a finite number",
                "Write null (None) or leave it out",
            )
        return float.__float__(value)

    def _refused(self, message: str, fix: str) -> InvalidEvent:
        return InvalidEvent(message, where=self._where, fix=fix, rule=RULE)


def _fitted(value: object, level: int) -> object:
    match value:
        case None | bool():
            return value
        case str():
            return fit_text(value)
        case int():
            return int(value) if abs(value) <= LARGEST_INTEGER else _digits(value)
        case float():
            return float.__float__(value) if math.isfinite(value) else _name_of(value)
        case Mapping() | list() | tuple() if level > MOST_LEVELS:
            return "…"
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {_fitted_key(key): _fitted(inner, level + 1) for key, inner in items}
        case list() | tuple():
            return [_fitted(each, level + 1) for each in cast("list[object]", value)]
        case _:
            return f"<{type(value).__name__}>"


def _fitted_key(key: object) -> str:
    fitted = _fitted(key, MOST_LEVELS + 1)
    return fitted if isinstance(fitted, str) else json.dumps(fitted)


def _digits(value: int) -> str:
    # Python writes at most 4300 decimal digits of an integer, but any number of hexadecimal ones.
    return str(int(value)) if value.bit_length() < 10_000 else hex(value)


def _name_of(value: float) -> str:
    """Return the name that dialects of JSON use for a number that is not finite."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _below(path: str, key: str) -> str:
    if _PLAIN_KEY.fullmatch(key) and len(key) <= _SHOWN:
        return f"{path}.{key}"
    return f"{path}[{json.dumps(key if len(key) <= _SHOWN else key[:_SHOWN] + '…')}]"


def _cut(path: str) -> str:
    return path if len(path) <= 2 * _SHOWN else f"{path[:_SHOWN]}…{path[-_SHOWN:]}"


def freeze(data: object) -> Any:
    """Return JSON data that cannot be changed."""
    match data:
        case FrozenObject() | FrozenList():
            return data
        case Mapping():
            return FrozenObject({key: freeze(each) for key, each in cast("Mapping[str, object]", data).items()})
        case list() | tuple():
            return FrozenList(freeze(each) for each in cast("list[object]", data))
        case _:
            return data


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("the extra of an asset cannot be changed after it was made. Make a new asset with another extra")


class _Frozen:
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = _refuse

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self


class FrozenObject(_Frozen, dict[str, Any]):
    """A JSON object that cannot be changed."""

    popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (dict(self),)


class FrozenList(_Frozen, list[Any]):
    """A JSON list that cannot be changed."""

    __iadd__ = __imul__ = _refuse
    append = extend = insert = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (list(self),)


NOTHING = FrozenObject()


MAX_KEY_LENGTH = 250
# A URI and two keys fit into a row of an index of Postgres.
MAX_KEY_BYTES = 575


def check_key(key: object) -> str:
    """Return a partition key, unchanged. Contract 2.5.

    Raises:
        InvalidEvent: the key is not valid text, is blank, or is longer than 250 characters or 575 bytes.
    """
    if not isinstance(key, str):
        raise InvalidEvent(
            f"The partition key {key!r} is a {type(key).__name__}", fix="Give a text, such as str(key).", rule="2.5"
        )
    if not key.strip():
        raise InvalidEvent("The partition key is blank", fix="Give at least one visible character.", rule="2.5")
    if len(key) > MAX_KEY_LENGTH:
        raise InvalidEvent(
            f"The partition key {key[:40]!r}… has {len(key)} characters, the limit is {MAX_KEY_LENGTH}",
            fix="Shorten it.",
            rule="2.5",
        )
    if len(key.encode(errors="surrogatepass")) > MAX_KEY_BYTES:
        raise InvalidEvent(
            f"The partition key {key[:40]!r}… has more than {MAX_KEY_BYTES} bytes", fix="Shorten it.", rule="2.5"
        )
    if not is_plain_text(key):
        raise InvalidEvent(
            f"The partition key {key!a} is not valid text", fix="Leave out NUL and lone surrogates.", rule="2.5"
        )
    return key
