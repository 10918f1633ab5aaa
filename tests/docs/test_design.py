"""docs/design.md names files, folders and functions that are there."""

import re

from tests.docs.pieces import ROOT

PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "assetflow"
PATHS = set(re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", PAGE))
# A row that begins with a question, and one that begins with a file.
ANSWERS = re.findall(r"^\| [^|]+ \| `([\w/]+\.py)` \| `(\w+)` \|$", PAGE, re.M)
STATIONS = re.findall(r"^\| `([\w/]+\.py)` \| ([^|]+) \|$", PAGE, re.M)


def test_the_paths_that_are_named_are_there() -> None:
    assert [path for path in sorted(PATHS) if not (PACKAGE / path).exists()] == []


def test_an_answer_is_in_its_file() -> None:
    assert len(ANSWERS) >= 5
    missing = [
        f"{file}: {name}"
        for file, name in ANSWERS
        if not re.search(rf"^ *(?:async )?def {name}\(", (PACKAGE / file).read_text(encoding="utf-8"), re.M)
    ]
    assert missing == []


def test_what_a_station_is_known_for_is_in_its_file() -> None:
    """A row names only classes and functions that its own file defines or calls."""
    assert len(STATIONS) > 30
    missing: list[str] = []
    for file, text in STATIONS:
        code = (PACKAGE / file).read_text(encoding="utf-8")
        names = re.findall(r"`([A-Z]\w+(?:\.\w+)?|_?[a-z]+(?:_[a-z]+)*)`", text)
        parts = [part for name in names for part in name.split(".")]
        missing += [f"{file}: {part}" for part in parts if not re.search(rf"\b{part}\b", code)]
    assert missing == []
