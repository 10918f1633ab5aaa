"""The examples of docs/contract.md are true: each scenario of the page gives the answer that stands under it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assetflow.core.simulate import simulate

PAGE = (Path(__file__).parents[2] / "docs" / "contract.md").read_text()
EXAMPLE = re.compile(r"^```json\n(.*?)^```\s+^```json \{\.answer\}\n(.*?)^```", re.M | re.S)
CHAPTERS = re.split(r"^## (?=\d)", PAGE, flags=re.M)[1:]
LAST_RULES = (8, 10, 7, 10, 7, 2, 4, 18, 17, 8, 7, 7)


def test_the_examples_give_the_answers_under_them() -> None:
    examples = [(json.loads(scenario), json.loads(answer)) for scenario, answer in EXAMPLE.findall(PAGE)]
    expected = {scenario["name"]: answer for scenario, answer in examples}
    assert {scenario["name"]: parts(simulate(scenario), answer) for scenario, answer in examples} == expected


def parts(found: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was found of the parts that an answer names, and the errors, named or not."""
    return {part: value for part, value in found.items() if part in answer or part == "errors"}


def test_every_example_is_run_and_each_chapter_of_rules_has_one() -> None:
    assert len(EXAMPLE.findall(PAGE)) == PAGE.count("```json\n") == PAGE.count("```json {.answer}\n")
    # The simulator begins where an update is known: it has no examples for chapters 10 and 11.
    assert [chapter[0] for chapter in CHAPTERS[:9] if not EXAMPLE.search(chapter)] == []
    rules = re.split(r"^(?=\*\*8\.\d+\*\*)", CHAPTERS[7], flags=re.M)[1:]
    assert [rule.split("*")[2] for rule in rules if not EXAMPLE.search(rule)] == []


def test_the_rules_are_numbered_without_gaps() -> None:
    """Chapter 6 begins with 6.0, the others with their first rule."""
    expected = [f"{c}.{rule}" for c, last in enumerate(LAST_RULES, 1) for rule in range(c != 6, last + 1)]
    assert re.findall(r"\*\*(\d+\.\d+)\*\*", PAGE) == expected
