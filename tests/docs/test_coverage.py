"""docs/coverage.md is complete, and names only what exists."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
DOCS = TESTS.parent / "docs"
PAGE = (DOCS / "coverage.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


def rows(title: str) -> dict[str, str]:
    """The table rows under a heading, by the number that they begin with."""
    _, _, rest = PAGE.partition(f"\n## {title}\n")
    assert rest, f"there is no chapter {title!r}"
    chapter = re.split(r"^## ", rest, flags=re.M)[0]
    return dict(re.findall(r"^\| (\d+(?:\.\d+)?) ?(.*)\|$", chapter, re.M))


def test_what_is_named_exists() -> None:
    there = {file: names(file) for file, _ in NAMED}
    assert [f"{file}::{name}" for file, name in NAMED if name not in there[file]] == []


def names(file: str) -> list[str]:
    text = (TESTS / file).read_text(encoding="utf-8") if (TESTS / file).exists() else ""
    return re.findall(r"^ *(?:async )?(?:def|class) (\w+)", text, re.M)


def test_every_rule_has_a_test() -> None:
    contract = re.findall(
        r"^\*\*((?:[1-79]|1[0-2])\.\d+)\*\*(?! Reserved)", (DOCS / "contract.md").read_text(encoding="utf-8"), re.M
    )
    found = rows("The rules")
    assert list(found) == contract
    assert [rule for rule, row in found.items() if "::" not in row] == []


def test_every_example_has_a_test() -> None:
    found = rows("The examples")
    assert list(found) == [*map(str, range(1, 23))]
    assert [example for example, row in found.items() if "::" not in row] == []


def test_every_test_of_an_example_is_named() -> None:
    files = {file.name for file in (TESTS / "examples").glob("test_*.py")}
    assert files == {Path(file).name for file, _ in NAMED if file.startswith("examples/")}


def test_the_named_cases_exist() -> None:
    cases = {case for row in rows("The rules").values() for case in re.findall(r"\w+", row.rsplit("|", 1)[-1])}
    assert cases
    folders = [TESTS / "conformance" / name for name in ("cases", "time")]
    assert [case for case in sorted(cases) if not any((each / f"{case}.json").exists() for each in folders)] == []
