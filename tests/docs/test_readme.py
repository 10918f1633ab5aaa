"""The README is true: its commands and targets are there; and the links of all pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assetflow.cli.app import app
from tests.docs.pieces import PAGES, ROOT

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.M | re.S)
SHELL = [line for kind, block in BLOCKS if not kind for line in block.splitlines()]
TEXT = re.sub(r"^```.*?^```", "", README, flags=re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    links = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    places = [(page.parent / link if link else page, title) for link, _, title in links]
    assert [place for place, _ in places if not place.exists()] == []
    assert [title for place, title in places if title and title not in titles(place)] == []


def titles(page: Path) -> set[str]:
    """The titles of a page, as GitHub writes them into addresses."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in found}


def test_a_newcomer_is_led_on() -> None:
    first_page = README.partition("\n## This repository")[0]
    assert "](docs/start.md)" in first_page
    assert "](concepts.md)" in (ROOT / "docs" / "start.md").read_text()


@pytest.mark.parametrize("name", sorted({line.split()[1] for line in SHELL if line.startswith("make ")}))
def test_a_make_target_is_there(name: str) -> None:
    assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(), re.M)


def named_commands() -> set[str]:
    lines = [line for line in SHELL if line.startswith("assetflow ")]
    lines += re.findall(r"`(assetflow [^`]*)`", TEXT)
    return {line.split()[1] for line in lines}


@pytest.mark.parametrize("name", sorted(named_commands()))
def test_a_command_is_there(name: str) -> None:
    assert name in set(app)
