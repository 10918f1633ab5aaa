"""docs/glossary.md is in order, and holds only words that the other pages or the code use."""

from __future__ import annotations

import re

from assetflow.cli.output import mark
from assetflow.core.values.words import STATES, colour_of
from tests.docs.pieces import PAGES, ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
ROW = re.compile(r"^\| \[([^\]]+)\]\([^)]+\) \| ([^|]+) \| ([^|]+) \|$", re.M)
ROWS = ROW.findall(GLOSSARY.read_text(encoding="utf-8"))
WORDS = [word for word, *_ in ROWS]
OWNERS = {"Airflow", "Prefect", "Spark", "–"}


def test_the_words_are_in_order_and_stand_there_once() -> None:
    rows = re.findall(r"^\| ", GLOSSARY.read_text(encoding="utf-8").partition("## States")[0], re.M)
    assert len(WORDS) == len(rows) - 2 > 40
    assert sorted(set(WORDS), key=str.lower) == WORDS


def test_the_words_are_used() -> None:
    """On another page or in the code, in the singular or the plural, also across the end of a line."""
    files = [*(page for page in PAGES if page != GLOSSARY), *(ROOT / "assetflow").glob("**/*.py")]
    text = " ".join(" ".join(file.read_text(encoding="utf-8").split()) for file in files)
    assert [word for word in WORDS if not re.search(rf"\b{re.escape(word)}(?:e?s)?\b", text, re.I)] == []


def test_a_word_has_a_short_meaning_and_an_owner() -> None:
    bad = [word for word, meaning, *_ in ROWS if not 1 <= len(re.findall(r"[.:](?= |$)", meaning)) <= 3]
    bad += [word for word, meaning, *_ in ROWS if not meaning.endswith(".")]
    bad += [word for word, _, owner in ROWS if owner not in OWNERS]
    assert bad == []


def test_the_glossary_is_linked() -> None:
    pages = ["README.md", "CONTRIBUTING.md", "docs/concepts.md"]
    assert [page for page in pages if "glossary.md)" not in (ROOT / page).read_text(encoding="utf-8")] == []


def test_the_table_of_states_is_that_of_the_product() -> None:
    table = GLOSSARY.read_text(encoding="utf-8").partition("## States, signs and colours")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", table, re.M)[2:]
    colours = {"good": "green", "busy": "blue", "bad": "red", "wait": "amber", "off": "grey"}
    declared = [(colours[colour_of(sign)], ", ".join(states)) for sign, states in STATES.items()]
    assert sorted((colour, states) for _, colour, states in rows) == sorted(declared)


def test_a_terminal_and_the_pages_have_the_same_colours() -> None:
    colours = {"good": "green", "busy": "cyan", "bad": "red", "wait": "yellow", "off": "dim"}
    assert {mark(states[0])[1] for states in STATES.values()} == set(colours.values())
    assert [sign for sign, states in STATES.items() if mark(states[0])[1] != colours[colour_of(sign)]] == []
