"""docs/faults.md explains each crash point, and each test of the suite says which failure it causes."""

from __future__ import annotations

import re
import runpy
from typing import get_args

from assetflow.crash_points import CrashPoint
from tests.docs.pieces import ROOT

PAGE = (ROOT / "docs" / "faults.md").read_text()
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "failures"))
FAILURES = list(SCRIPT["failures"]())


def test_every_scenario_of_the_suite_says_what_fails() -> None:
    scenarios = {
        name
        for path in (ROOT / "tests" / "faults").glob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.M)
    }
    assert len(scenarios) > 20
    assert scenarios - {name for _, name, _ in FAILURES} == set()


def test_every_failure_is_on_the_page_with_what_follows() -> None:
    told = re.findall(r"^\| (.+?) \| .+ \| `", SCRIPT["failures_page"](), re.M)
    assert sorted({what for _, _, (_, what, *_) in FAILURES}) == sorted(told)


def test_every_crash_point_is_explained() -> None:
    points = {point for kind in get_args(CrashPoint) for point in get_args(kind)}
    assert points == set(re.findall(r"^\| `(between-[\w-]+)`", PAGE, re.M))
