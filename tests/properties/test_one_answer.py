"""A drawn scenario has one answer: by any hash seed, in any order of flows, above a flow that reads all."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.properties.drawn import answer, text
from tests.properties.drawn_freshness import scenario

Json = dict[str, Any]

NUMBERS = range(60)
# As many as `make test` has time for.
SEEDED = range(20)


@pytest.mark.parametrize("module", ["drawn_freshness", "drawn_time"])
def test_three_hash_seeds_give_one_answer(module: str) -> None:
    command = [sys.executable, "-m", f"tests.properties.{module}", str(SEEDED.start), str(SEEDED.stop)]
    found = [
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, check=True, capture_output=True).stdout
        for seed in "123"
    ]
    assert found[0].count(b"\n") == len(SEEDED)
    assert len(set(found)) == 1


@pytest.mark.parametrize("number", NUMBERS)
def test_the_order_of_definitions_and_a_flow_below_change_nothing(number: int) -> None:
    drawn = scenario(number)
    plain, flows = answer(drawn), drawn["consumers"]
    below = {"schedule": {"eager": {}}, "makes": ["zz"], "reads": ["r", "s", *flows], "takes": 10}
    assert answer(drawn | {"consumers": dict(reversed(flows.items()))}) == plain
    assert _without("zz", answer(drawn | {"consumers": flows | {"zz": below}})) == plain


def test_what_was_wrong_once_is_drawn() -> None:
    found = {kind for number in NUMBERS for kind in _drawn(scenario(number))}
    assert found == {
        "a plain flow writes a key",
        "other mappers alone",
        "an input is gone",
        "an end and a deploy at one instant",
    }
    assert {len(scenario(number)["consumers"]) for number in NUMBERS} == {6, 7, 8, 9}


def _drawn(of: Json) -> Iterator[str]:
    now, ends = dict(of["consumers"]), _ends(of)
    for step in of["steps"]:
        if "run" in step and "partition_key" in step and "partitioned" not in _kind(now[step["run"]]):
            yield "a plain flow writes a key"
        for name, flow in step.get("redeploy", {}).items():
            if flow["schedule"] != now[name]["schedule"] and _kind(flow) == _kind(now[name]):
                yield "other mappers alone"
            if {*now[name]["reads"]} - {*flow["reads"]}:
                yield "an input is gone"
            if step["at"] in ends:
                yield "an end and a deploy at one instant"
            now[name] = flow


def _kind(flow: Json) -> tuple[str, ...]:
    """Return all that a flow is but for its mappers."""
    schedule = flow["schedule"] or {}
    return tuple(sorted({*flow["reads"], *schedule, *(each for options in schedule.values() for each in options)}))


def _ends(of: Json) -> set[str]:
    lasting = {name: timedelta(seconds=flow["takes"]) for name, flow in of["consumers"].items() if flow["takes"]}
    runs = [run for run in answer(of)["runs"] if run["consumer"] in lasting]
    return {text(datetime.fromisoformat(run["time"]) + lasting[run["consumer"]]) for run in runs}


def _without(consumer: str, found: Json) -> Json:
    runs = [run for run in found["runs"] if run["consumer"] != consumer]
    answers = [
        each | {"plan": [row for row in each["plan"] if row["consumer"] != consumer]} if "plan" in each else each
        for each in found["answers"]
    ]
    return found | {"runs": runs, "answers": answers}
