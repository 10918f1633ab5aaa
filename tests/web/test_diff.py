"""The page of what a deploy would change shows the stages that the terminal and Markdown show."""

from __future__ import annotations

import pytest

from assetflow.core.compare import CURSOR, stages_of
from assetflow.core.shapes import as_json
from assetflow.ledger import Ledger
from tests.web.conftest import Site
from tests.web.kept_diff import EVERYTHING, keep_diff


def test_the_page_says_how_to_keep_a_comparison(site: Site) -> None:
    assert "assetflow diff --replay 7d --page" in site.page("/diff").text
    assert "/diff" in site.page("/consumers").links


@pytest.mark.rule("11.5")
def test_the_page_shows_every_stage_with_all_of_its_words(site: Site, ledger: Ledger) -> None:
    keep_diff(ledger)
    # A time is an element of its own, before which the reader puts a blank.
    text = "".join(site.page("/diff").text.split())
    assert "from/srv/shop,byanna" in text
    for stage in stages_of(EVERYTHING):
        said = [stage.title, stage.note]
        for line in stage.lines:
            said += [line.name, line.words, line.before or "", line.after or "", *line.notes]
        assert [words for words in said if "".join(words.split()) not in text] == []


def test_what_a_flow_is_called_cannot_become_part_of_the_page(site: Site, ledger: Ledger) -> None:
    keep_diff(ledger)
    kept = ledger.reader.cursor(CURSOR)
    assert isinstance(kept, dict)
    kept["stages"][0]["lines"][0]["name"] = "<script>alert(1)</script>"
    ledger.writer.set_cursor(CURSOR, as_json(kept))
    answer = site.get("/diff")
    assert "<script>alert(1)" not in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
