"""docs/design.md names files, folders and functions that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pieces import ROOT

PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "assetflow"
PATHS = sorted(set(re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", PAGE)))
# A row that begins with a question, and one that begins with a file.
ANSWERS = re.findall(r"^\| [^|]+ \| `([\w/]+\.py)` \| `(\w+)` \|$", PAGE, re.M)
STATIONS = re.findall(r"^\| `([\w/]+\.py)` \| ([^|]+) \|$", PAGE, re.M)


def rooms() -> list[Path]:
    """The files and folders in the picture of the rooms."""
    picture = re.split(r"^```$", PAGE.partition("\n## The rooms\n")[2], flags=re.M)[1]
    lines = re.findall(r"^( *)([\w./]+)", picture, re.M)
    return [(PACKAGE if indent else ROOT) / name for indent, name in lines]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_is_named_is_there(path: str) -> None:
    found = PACKAGE / path if not path.startswith("assetflow/") else ROOT / path
    assert found.is_dir() if path.endswith("/") else found.is_file()


def test_the_rooms_are_there_and_complete() -> None:
    assert [path for path in rooms() if not path.exists()] == []
    folders = {path.parent for path in PACKAGE.glob("*/__init__.py")}
    assert {path for path in rooms() if path.parent == PACKAGE and path.is_dir()} == folders


def test_the_rooms_within_rooms_are_complete() -> None:
    named = {PACKAGE / path for path in PATHS if path.endswith("/")}
    inner = {path.parent for path in PACKAGE.glob("*/*/__init__.py")}
    divided = {path.parent for path in named if path in inner}
    folders = {path for path in inner if path.parent in divided and path.name != "migrations"}
    assert folders <= named


def test_the_first_questions_are_answered() -> None:
    assert len(ANSWERS) == 3


@pytest.mark.parametrize(("file", "name"), ANSWERS)
def test_an_answer_is_in_its_file(file: str, name: str) -> None:
    assert re.search(rf"^ *(?:async )?def {name}\(", (PACKAGE / file).read_text(encoding="utf-8"), re.M)


def test_the_road_is_long_enough_to_be_the_road() -> None:
    assert len(STATIONS) > 40


@pytest.mark.parametrize(("file", "text"), STATIONS)
def test_a_name_that_a_station_is_known_for_is_in_its_file(file: str, text: str) -> None:
    """A row names only classes and functions that its own file defines or calls."""
    code = (PACKAGE / file).read_text(encoding="utf-8")
    found = re.findall(r"`([A-Z]\w+(?:\.\w+)?|_?[a-z]+(?:_[a-z]+)*)`", text)
    for part in (part for name in found for part in name.split(".")):
        assert re.search(rf"\b{part}\b", code), part
