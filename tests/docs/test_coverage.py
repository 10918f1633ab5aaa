"""Each rule of docs/contract.md has a test that carries its number, and each number that a test carries is a rule."""

from __future__ import annotations

import re
import runpy
from itertools import chain

from tests.docs.pieces import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "coverage"))
RULES = set(chain.from_iterable(SCRIPT["contract_chapters"]().values()))
TESTS = list(SCRIPT["tests_with_rules"]())


def test_every_rule_has_a_test() -> None:
    assert len(RULES) > 100
    assert RULES - {rule for _, rules in TESTS for rule in rules} == set()


def test_every_marker_names_a_rule() -> None:
    assert [(test, rule) for test, rules in TESTS for rule in rules if rule not in RULES] == []


def test_every_scenario_names_rules_that_are_there() -> None:
    assert [(file, rule) for file, rule in SCRIPT["scenarios_with_rules"]() if rule not in RULES] == []


def test_every_example_has_a_test() -> None:
    _, _, chapter = SCRIPT["coverage_page"]().partition("## The examples")
    numbers = re.findall(r"^\*\*Example (\d+): .*\*\*\n\n- `", chapter, re.M)
    assert numbers == [*map(str, range(1, 23))]
