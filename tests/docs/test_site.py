"""The documentation as a site: its menu has every page, and the site shows every block of code as one."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from tests.docs.pieces import ROOT, pieces
from tests.docs.public import MODULES

PROJECT = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
# `shell {#data}` and `python title="flows.py"`: the site shows a block with another second word as a line of text.
FENCE = re.compile(r'\w*( title="[^"]+"| \{[.#][\w-]+\})?')


def menu(entry: Any) -> Iterator[str]:
    """Return the pages of an entry of the menu, in their order."""
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from menu(part)


def test_every_page_is_in_the_menu_once() -> None:
    made = re.findall(r"for page in (.+?); do", (ROOT / "Makefile").read_text())[0].split()
    assert sorted(menu(PROJECT["nav"])) == sorted(
        [*(f"{name}.md" for name in made), *(page.name for page in (ROOT / "docs").glob("*.md"))]
    )


def test_the_site_knows_how_blocks_begin() -> None:
    fences = [
        (page.name, fence)
        for page in (ROOT / "docs").glob("*.md")
        for fence in re.findall(r"^ *```(.*)$", page.read_text(encoding="utf-8"), re.M)
    ]
    assert len(fences) > 100
    assert [(page, fence) for page, fence in fences if not FENCE.fullmatch(fence)] == []


def test_home_begins_as_the_readme_does() -> None:
    assert pieces("docs/index.md") == pieces("README.md")[:1]


def test_the_public_modules_are_on_the_page_of_python() -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    assert re.findall(r"^::: (\S+)$", page, re.M) == re.findall(r"^## `([\w.]+)`", page, re.M) == list(MODULES)
