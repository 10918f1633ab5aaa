"""Drawn scenarios of chapter 9: the simulator and a naive reading of the rules give one answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assetflow.core.simulate import simulate
from tests.properties.drawn_time import scenario
from tests.properties.naive_time import NaiveTime, minute_of

Json = dict[str, Any]
_WHEN = ("expired", "skipped")


def simulated(drawn: Json) -> Json:
    answer = json.loads(json.dumps(simulate(drawn)))
    assert "errors" not in answer
    runs = [
        (
            row["at"],
            row["consumer"],
            row.get("partition_key"),
            row.get("time"),
            bool(row.get("deadline")),
            [(each["asset"], each["step"]) for each in row["events"]],
        )
        for row in answer["runs"]
    ]
    missed = [
        (row["at"], row["consumer"], row.get("partition_key"), row["due"], row["then"], row["queued"])
        for row in answer.get("missed", [])
    ]
    receipts = [
        (
            row["event"],
            row["consumer"],
            row.get("partition_key"),
            row["status"],
            row["at"] if row["status"] in _WHEN else None,
        )
        for row in answer["receipts"]
    ]
    return shaped(runs, missed, receipts)


def naive(drawn: Json) -> Json:
    answer = NaiveTime(drawn).answer()
    runs = [
        (row["at"], row["consumer"], row["key"], row["time"], row["overdue"], row["events"]) for row in answer["runs"]
    ]
    missed = [
        (row["at"], row["consumer"], row["key"], row["due"], row["then"], row["queued"]) for row in answer["missed"]
    ]
    receipts = [
        (row["event"], row["consumer"], row["key"], row["status"], row["until"] if row["status"] in _WHEN else None)
        for row in answer["receipts"]
    ]
    return shaped(runs, missed, receipts)


def shaped(*tables: Any) -> Json:
    """Return rows in one order, their times as minutes."""

    def minutes(value: Any) -> Any:
        return minute_of(value) if isinstance(value, str) and value.endswith("Z") else value

    rows = [[tuple(map(minutes, row)) for row in table] for table in tables]
    return dict(zip(("runs", "missed", "receipts"), (sorted(each, key=str) for each in rows), strict=True))


@pytest.mark.parametrize("number", range(60))
def test_a_naive_reading_of_chapter_9_gives_the_same_answer(number: int) -> None:
    drawn = scenario(number)

    assert simulated(drawn) == naive(drawn)
