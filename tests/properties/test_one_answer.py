"""A drawn scenario has one answer: by any hash seed, in any order of flows, above a flow that reads all."""

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.properties.drawn import answer
from tests.properties.drawn_freshness import scenario

Json = dict[str, Any]

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


@pytest.mark.parametrize("number", range(40))
def test_the_order_of_definitions_and_a_flow_below_change_nothing(number: int) -> None:
    drawn = scenario(number)
    plain, flows = answer(drawn), drawn["consumers"]
    below = {"schedule": {"eager": {}}, "makes": ["zz"], "reads": ["r", "s", *flows], "takes": 10}
    assert answer(drawn | {"consumers": dict(reversed(flows.items()))}) == plain
    assert _without("zz", answer(drawn | {"consumers": flows | {"zz": below}})) == plain


def _without(consumer: str, found: Json) -> Json:
    runs = [run for run in found["runs"] if run["consumer"] != consumer]
    answers = [
        each | {"plan": [row for row in each["plan"] if row["consumer"] != consumer]} if "plan" in each else each
        for each in found["answers"]
    ]
    return found | {"runs": runs, "answers": answers}
