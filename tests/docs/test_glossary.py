"""docs/glossary.md is in order, and holds only words that the other pages or the code use."""

from __future__ import annotations

import re

import pytest

from tests.docs.pieces import PAGES, ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.M)
ROWS = ROW.findall(GLOSSARY.read_text(encoding="utf-8"))[2:]
WORDS = [word for word, *_ in ROWS]
OWNERS = {"Airflow", "Prefect", "Spark", "–"}


@pytest.fixture(scope="module")
def text() -> str:
    """All pages and the code, without the glossary."""
    files = [*(page for page in PAGES if page != GLOSSARY), *(ROOT / "assetflow").glob("**/*.py")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def test_the_words_are_in_order_and_stand_there_once() -> None:
    assert len(WORDS) > 50
    assert sorted(set(WORDS), key=str.lower) == WORDS


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_used(word: str, text: str) -> None:
    """In the singular or the plural, also across the end of a line."""
    pattern = r"\s+".join(map(re.escape, word.split()))
    assert re.search(rf"\b{pattern}(?:e?s)?\b", text, re.I)


@pytest.mark.parametrize(("word", "meaning", "owner", "more"), ROWS, ids=WORDS)
def test_a_word_has_a_short_meaning_an_owner_and_a_link(word: str, meaning: str, owner: str, more: str) -> None:
    assert 1 <= len(re.findall(r"[.:](?= |$)", meaning)) <= 3, word
    assert meaning.endswith(".")
    assert owner in OWNERS
    assert re.fullmatch(r"\[[^\]]+\]\([^)]+\)", more)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/concepts.md"])
def test_the_glossary_is_linked(page: str) -> None:
    assert "glossary.md)" in (ROOT / page).read_text(encoding="utf-8")
