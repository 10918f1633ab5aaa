"""Drawn scenarios of chapter 8 without partitions: the simulator and a naive reading of the rules give one answer."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest

from assetflow.core.simulate import simulate
from tests.properties.drawn_freshness import scenario
from tests.properties.naive_freshness import NaiveFreshness, second_of

Json = dict[str, Any]


def simulated(drawn: Json) -> Json:
    answer = json.loads(json.dumps(simulate(drawn)))
    runs = [(second_of(row["at"]), row["consumer"], _causes(row["because"])) for row in answer["runs"]]
    status = next(each["status"] for each in answer["answers"] if "status" in each)
    states = {uri: (row["state"], row["outdated"]) for uri, row in status.items() if uri not in ("r", "s")}
    policies = next(each["freshness"] for each in answer["answers"] if "freshness" in each)
    data_times = {uri: _moment(row["data_time"]) for uri, row in policies.items()}
    return {"runs": sorted(runs), "states": states, "data_times": data_times}


def _moment(text: str | None) -> float | None:
    return inf if text == "current" else None if text is None else second_of(text)


def _causes(rows: list[Json]) -> list[str]:
    return sorted(f"{row['kind']} {row.get('asset')}" for row in rows)


def naive(drawn: Json) -> Json:
    answer = NaiveFreshness(drawn).answer()
    runs = [
        (row["at"], row["consumer"], sorted(f"{kind} {uri}" for kind, uri in row["because"])) for row in answer["runs"]
    ]
    return {"runs": sorted(runs), "states": answer["states"], "data_times": answer["data_times"]}


@pytest.mark.parametrize("number", range(40))
def test_a_naive_reading_of_chapter_8_gives_the_same_answer(number: int) -> None:
    drawn = scenario(number, is_plain=True)

    assert simulated(drawn) == naive(drawn)
