"""What drawn scenarios have in common. Each number stands for one, whatever the process and its hash seed."""

import json
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

from assetflow.core.simulate import simulate

Json = dict[str, Any]

_PARTS = ("runs", "missed", "receipts", "answers", "freshness_events", "backfills", "errors")


def answer(of: Json) -> Json:
    found: Json = json.loads(json.dumps(simulate(of)))
    return {part: _sorted(found.get(part, [])) for part in _PARTS}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def print_answers(scenario: Callable[[int], Json]) -> None:
    for number in range(*map(int, sys.argv[1:])):
        print(json.dumps([number, answer(scenario(number))], sort_keys=True))  # noqa: T201
