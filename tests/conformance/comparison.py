"""Comparing an answer of the simulator with the one that is expected."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

Answer = Mapping[str, Any]


def differences(expected: Answer, actual: Answer, *, receipts: bool) -> list[str]:
    """What differs, in readable lines; empty when the answers are equal under the rules of the format."""
    return list(_differ("", _comparable(expected, receipts), _comparable(actual, receipts)))


def _comparable(answer: Answer, receipts: bool) -> dict[str, Any]:
    part: dict[str, Any] = {key: answer.get(key) for key in ("name", "runs", "queued", "pending_partitions")}
    for key in ("answers", "missed", "freshness_events", "backfills"):
        part[key] = answer.get(key, [])
    part["errors"] = [{key: e[key] for key in ("step", "consumer") if key in e} for e in answer.get("errors", [])]
    if receipts:
        part["receipts"] = [{k: v for k, v in r.items() if k != "error"} for r in answer.get("receipts", [])]
    return {key: _without_order(value, key) for key, value in part.items()}


# Lists whose order means nothing.
_SETS = ("because", "missing", "waits_for", "causes")


def _without_order(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        return {name: _without_order(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        rows = [_without_order(inner, "") for inner in value]
        return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True)) if key in _SETS else rows
    return value


def _differ(path: str, expected: Any, actual: Any) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys(), key=str):
            yield from _differ(f"{path}.{key}", expected.get(key, _NOTHING), actual.get(key, _NOTHING))
    elif isinstance(expected, list) and isinstance(actual, list):
        for number in range(max(len(expected), len(actual))):
            yield from _differ(f"{path}[{number}]", _item(expected, number), _item(actual, number))
    elif type(expected) is not type(actual) or expected != actual:
        yield f"{path.lstrip('.')}: expected {_text(expected)}, got {_text(actual)}"


_NOTHING = object()


def _item(items: list[Any], number: int) -> Any:
    return items[number] if number < len(items) else _NOTHING


def _text(value: Any) -> str:
    return "nothing" if value is _NOTHING else json.dumps(value, ensure_ascii=False)
