"""Drawn scenarios of chapter 8: the simulator and a naive reading of the rules give one answer."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest

from assetflow.core.simulate import simulate
from tests.properties.drawn_freshness import scenario
from tests.properties.naive_freshness import NaiveFreshness
from tests.properties.naive_items import second_of

Json = dict[str, Any]


def simulated(drawn: Json) -> Json:
    answer = json.loads(json.dumps(simulate(drawn)))
    assert "errors" not in answer
    answers = {kind: of for each in answer["answers"] for kind, of in each.items()}
    runs = [(second_of(row["at"]), *_target(row), _causes(row["because"])) for row in answer["runs"]]
    statuses = {
        uri: (row.get("counts", row.get("state")), row["outdated"])
        for uri, row in answers["status"].items()
        if uri not in ("r", "s")
    }
    data_times = {uri: _moment(row["data_time"]) for uri, row in answers["freshness"].items()}
    plan = {_target(row): row["verdict"] for row in answers["plan"]}
    told = [(second_of(row["time"]), row["asset"], row["state"]) for row in answer.get("freshness_events", [])]
    return {
        "runs": sorted(runs, key=str),
        "statuses": statuses,
        "data_times": data_times,
        "plan": plan,
        "told": sorted(told),
    }


def _target(row: Json) -> tuple[str, str | None]:
    return row["consumer"], row.get("partition_key")


def _moment(text: str | None) -> float | None:
    return inf if text == "current" else None if text is None else second_of(text)


def _causes(rows: list[Json]) -> list[str]:
    return sorted({f"{row['kind']} {row.get('asset')} {row.get('partition_key')}" for row in rows})


def naive(drawn: Json) -> Json:
    answer = NaiveFreshness(drawn).answer()
    runs = [
        (row["at"], row["consumer"], row["key"], sorted(f"{kind} {uri} {key}" for kind, uri, key in row["because"]))
        for row in answer["runs"]
    ]
    return answer | {"runs": sorted(runs, key=str), "told": sorted(answer["told"])}


# The first two of these add or remove partitions and inputs while a run is going on. In the last one, a flow with
# partitions makes an update without a key, and a Lazy flow waits for its keys.
@pytest.mark.parametrize("number", [*range(40), 1327, 1479, 4551])
def test_a_naive_reading_of_chapter_8_gives_the_same_answer(number: int) -> None:
    drawn = scenario(number)

    assert simulated(drawn) == naive(drawn)
