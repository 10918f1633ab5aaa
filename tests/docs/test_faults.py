"""docs/faults.md names tests, crash points and options that are there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from assetflow.crash_points import CrashPoint

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "faults.md").read_text()
NAMED = set(re.findall(r"`(test_\w+)`", PAGE))


def found_in(pattern: str) -> set[str]:
    return {
        name
        for path in ROOT.glob(pattern)
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.M)
    }


def test_every_test_that_is_named_is_there() -> None:
    assert not NAMED - found_in("tests/**/test_*.py")


def test_every_scenario_of_the_suite_is_named() -> None:
    scenarios = found_in("tests/faults/test_*.py")
    assert len(scenarios) > 20
    assert scenarios <= NAMED


def test_every_crash_point_is_explained() -> None:
    points = {point for kind in get_args(CrashPoint) for point in get_args(kind)}
    assert points == set(re.findall(r"^\| `(between-[\w-]+)`", PAGE, re.M))
