"""Every conformance case: the simulator gives exactly the answer that the contract asks for."""

import json
from pathlib import Path
from typing import Any

import pytest

from assetflow.core.simulate import simulate
from tests.conformance.comparison import differences

HERE = Path(__file__).parent


def cases() -> list[Any]:
    """Each scenario with its expected answer; the scenario's name is the test's id."""
    found = []
    for expected_file in sorted(HERE.glob("*/*.expected.json")):
        scenario_file = expected_file.with_name(expected_file.name.replace(".expected", ""))
        scenarios, answers = (json.loads(f.read_text(encoding="utf-8")) for f in (scenario_file, expected_file))
        found += [pytest.param(s, a, id=s["name"]) for s, a in zip(scenarios, answers, strict=True)]
    return found


@pytest.mark.parametrize(("scenario", "expected"), cases())
def test_answer_is_the_expected_one(scenario: dict[str, Any], expected: dict[str, Any]) -> None:
    answer = json.loads(json.dumps(simulate(scenario)))
    found = differences(expected, answer, receipts=bool(scenario.get("receipts")))
    assert not found, f"{scenario['name']} ({scenario.get('why', '')})\n" + "\n".join(found)


def test_all_cases_are_there_and_no_two_have_one_name() -> None:
    assert len({case.id for case in cases()}) == len(cases()) == 941
