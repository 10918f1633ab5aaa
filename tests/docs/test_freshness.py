"""docs/status.md knows each verdict of a plan and each state of a status, and no others."""

from __future__ import annotations

import re
from typing import get_args

from assetflow.core.freshness.records import ItemState, VerdictName
from tests.docs.pieces import ROOT

PAGE = (ROOT / "docs" / "status.md").read_text(encoding="utf-8")


def first_column(title: str) -> set[str]:
    """Return what the rows of the table with this title begin with."""
    (rows,) = re.findall(rf"^\| {re.escape(title)} \|.*\n\|[ -|]+\n((?:\|.*\n)+)", PAGE, re.M)
    return {row.split("|")[1].strip() for row in rows.splitlines()}


def test_the_verdicts_are_those_of_a_plan() -> None:
    assert first_column("verdict") == set(get_args(VerdictName))


def test_the_states_are_those_of_a_status() -> None:
    assert first_column("state") == {*get_args(ItemState), "fresh, outdated"}
