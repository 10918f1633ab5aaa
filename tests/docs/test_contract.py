"""The examples of docs/contract.md are true: each scenario of the page gives the answer that stands under it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from assetflow.core.simulate import simulate

PAGE = (Path(__file__).parents[2] / "docs" / "contract.md").read_text()
EXAMPLE = re.compile(r"^```json\n(.*?)^```\s+^```json answer\n(.*?)^```", re.M | re.S)
CHAPTERS = re.split(r"^## (?=\d)", PAGE, flags=re.M)[1:]
RULES = {
    1: (1, 8),
    2: (1, 8),
    3: (1, 7),
    4: (1, 7),
    5: (1, 7),
    6: (0, 2),
    7: (1, 3),
    8: (1, 18),
    9: (1, 17),
    10: (1, 8),
}


def examples() -> list[Any]:
    found = [(json.loads(scenario), json.loads(answer)) for scenario, answer in EXAMPLE.findall(PAGE)]
    return [pytest.param(scenario, answer, id=scenario["name"]) for scenario, answer in found]


@pytest.mark.parametrize(("scenario", "answer"), examples())
def test_an_example_gives_the_answer_under_it(scenario: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    found = cast("dict[str, Any]", simulate(scenario))
    assert ("errors" in found) == ("errors" in answer)
    assert {part: found[part] for part in answer} == answer


def test_every_example_is_run() -> None:
    assert len(EXAMPLE.findall(PAGE)) == PAGE.count("```json\n") == PAGE.count("```json answer\n")


# The simulator begins where an update is known: it has no examples for chapter 10.
@pytest.mark.parametrize("chapter", CHAPTERS[:9], ids=lambda chapter: chapter[0])
def test_each_chapter_of_rules_has_an_example(chapter: str) -> None:
    assert EXAMPLE.search(chapter)


@pytest.mark.parametrize(
    "rule", re.split(r"^(?=\*\*8\.\d+\*\*)", CHAPTERS[7], flags=re.M)[1:], ids=lambda rule: rule.split("*")[2]
)
def test_each_rule_of_chapter_8_has_an_example(rule: str) -> None:
    assert EXAMPLE.search(rule)


def test_the_rules_are_numbered_without_gaps() -> None:
    expected = [f"{chapter}.{rule}" for chapter, (first, last) in RULES.items() for rule in range(first, last + 1)]
    assert re.findall(r"\*\*(\d+\.\d+)\*\*", PAGE) == expected
