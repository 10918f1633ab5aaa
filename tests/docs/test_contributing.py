"""CONTRIBUTING.md and the pages are true about `make` and about the markers of tests."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WALK = r"^@pytest\.mark\.walk$"
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))


def named(page: Path) -> set[str]:
    """The targets of `make` that a page names, in its text and where it shows commands."""
    return set(re.findall(r"(?:^ *|`)make ([a-z-]+)", page.read_text(), re.M))


def test_pages_name_targets_that_are_there() -> None:
    assert {"check", "test-services", "faults"} <= named(PAGES[0])
    assert {(page.name, target) for page in PAGES for target in named(page) - TARGETS} == set()


def test_tests_are_marked_in_their_own_file_where_make_test_services_looks() -> None:
    """The fixture of `tests/ledger` is the exception: `make test-services` looks at the whole folder."""
    mark = re.compile(r"mark\.(?:prefect|spark|browser|postgres|rabbitmq|redis|long)\b")
    marked = [path for path in (ROOT / "tests").rglob("*.py") if mark.search(path.read_text())]
    assert len(marked) > 100
    assert [path.parent.name for path in marked if not path.name.startswith("test_")] == ["ledger"]


def test_make_test_has_three_walks() -> None:
    walks = [path for path in (ROOT / "tests").rglob("test_*.py") for _ in re.findall(WALK, path.read_text(), re.M)]
    assert len(walks) == 3


def test_every_marker_is_explained() -> None:
    table = re.findall(r"^\| (`.+`) \|", PAGES[0].read_text(), re.M)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    markers = {line.partition(":")[0] for line in settings["markers"]}
    assert {name for cell in table for name in re.findall(r"`(\w+)`", cell)} == markers
