"""The README is true: its commands and targets are there; and the links of all pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

from assetflow.cli.app import app
from tests.docs.pieces import PAGES, ROOT

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.M | re.S)
SHELL = [line for kind, block in BLOCKS if not kind for line in block.splitlines()]
TEXT = re.sub(r"^```.*?^```", "", README, flags=re.M | re.S)


def test_the_links_of_the_pages_lead_somewhere() -> None:
    linked = [(page.name, *place) for page in PAGES for place in links(page)]
    assert [(page, place) for page, place, _ in linked if not place.exists()] == []
    assert [(page, title) for page, place, title in linked if title and title not in titles(place)] == []


def links(page: Path) -> list[tuple[Path, str]]:
    """Return the file and the title that each link of a page leads to, those to other sites left out."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    found = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    return [(page.parent / link if link else page, title) for link, _, title in found]


def titles(page: Path) -> set[str]:
    """The titles of a page, as GitHub writes them into addresses."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in found}


def test_a_newcomer_is_led_on() -> None:
    first_page = README.partition("\n## This repository")[0]
    assert "](docs/start.md)" in first_page
    assert "](concepts.md)" in (ROOT / "docs" / "start.md").read_text()


def named_commands() -> set[str]:
    lines = [line for line in SHELL if line.startswith("assetflow ")]
    lines += re.findall(r"`(assetflow [^`]*)`", TEXT)
    return {line.split()[1] for line in lines}


def test_the_commands_are_there() -> None:
    assert named_commands() - set(app) == set()
