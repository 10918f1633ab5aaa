"""Each rule of the contract has a test that carries its number, and each failure of the suite a place on its page."""

import re
import runpy
from itertools import chain
from typing import get_args

from assetflow.crash_points import CrashPoint
from tests.docs.pieces import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "coverage"))
RULES = set(chain.from_iterable(SCRIPT["contract_chapters"]().values()))
TESTS = list(SCRIPT["tests_with_rules"]())


def test_every_rule_has_a_test_and_markers_and_scenarios_name_rules() -> None:
    assert len(RULES) > 100
    assert RULES - {rule for _, rules in TESTS for rule in rules} == set()
    assert [(test, rule) for test, rules in TESTS for rule in rules if rule not in RULES] == []
    assert [(file, rule) for file, rule in SCRIPT["scenarios_with_rules"]() if rule not in RULES] == []


def test_every_example_has_a_test() -> None:
    _, _, chapter = SCRIPT["coverage_page"]().partition("## The examples")
    numbers = re.findall(r"^\*\*Example (\d+): .*\*\*\n\n- `", chapter, re.M)
    assert numbers == [*map(str, range(1, 23))]


PAGE = (ROOT / "docs" / "faults.md").read_text()
FAULTS = runpy.run_path(str(ROOT / "scripts" / "failures"))
FAILURES = list(FAULTS["failures"]())


def test_every_scenario_of_the_suite_says_what_fails() -> None:
    scenarios = {
        name
        for path in (ROOT / "tests" / "faults").glob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.M)
    }
    assert len(scenarios) > 20
    assert scenarios - {name for _, name, _ in FAILURES} == set()


def test_every_failure_is_on_the_page_with_what_follows() -> None:
    told = re.findall(r"^\| (.+?) \| .+ \| `", FAULTS["failures_page"](), re.M)
    assert sorted({what for _, _, (_, what, *_) in FAILURES}) == sorted(told)


def test_every_crash_point_is_explained() -> None:
    points = {point for kind in get_args(CrashPoint) for point in get_args(kind)}
    assert points == set(re.findall(r"^\| `(between-[\w-]+)`", PAGE, re.M))
