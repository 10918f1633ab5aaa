"""Backfills on the pages: what one would run, how far it is, stop and resume (8.18)."""

from datetime import timedelta

import pytest

from assetflow.core.partitions import StartOfDayMapper
from assetflow.ledger import Ledger
from tests.cli.shop import NOON, raw_core_board
from tests.ledger.write.test_kept import Place
from tests.web.conftest import Site
from tests.web.html import read

NEW = "/backfills/new?asset=s3://lake/core"


@pytest.fixture
def place(ledger: Ledger) -> Place:
    mapper = StartOfDayMapper(input_format="%Y-%m-%d", output_format="%Y-%m-%d")
    return raw_core_board(ledger, NOON - timedelta(days=1), mapper, ("2026-11-01", "2026-11-02"))


@pytest.mark.usefixtures("place")
def test_the_asset_leads_to_a_form_that_shows_what_would_run(site: Site) -> None:
    assert "/backfills/new?asset=s3%3A%2F%2Flake%2Fcore" in site.page("/asset?asset=s3://lake/core").links
    text = site.page(NEW).text
    assert "2 runs: 2 partitions updated before." in text
    assert "Wave 1 core/shop 2 runs 2026-11-01 … 2026-11-02" in text
    assert "Start 2 runs" in text
    below = site.page(f"{NEW}&down=yes&start=2026-11-02&end=2026-11-03").text
    assert "4 runs in 2 waves: 1 partition updated before, 1 never." in below
    assert "Never updated: 2026-11-03." in below
    assert "Wave 2 board/shop 2 runs" in below
    # A month is a range of its own.
    assert "Start 30 runs" in site.page(f"{NEW}&start=2026-11").text
    assert site.page("/backfills").text.count("No backfills yet") == 1
    (asks,) = [each["hx-get"] for each in site.page(NEW).named("div") if each.get("class", "").startswith("what-if")]
    part = read(site.get(asks, headers={"hx-request": "true"}).text)
    assert "When they have completed" in part.text
    assert "starts board/shop for 2026-11-01 starts board/shop for 2026-11-02" in part.text
    below = site.get(f"{asks}&down=yes", headers={"hx-request": "true"}).text
    assert "No other flow waits for what they make." in below


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("start=soon", "'soon' is not a time"),
        ("start=2026-11-03&end=2026-11-01", "2026-11-01 is before 2026-11-03. Exchange them"),
        ("start=2026-11&keys=2026-11-01", "Keys and a range cannot be given together"),
        ("concurrency=many", "'many' is not a number from 1 to 10,000"),
    ],
)
def test_what_is_wrong_stands_at_its_field(site: Site, query: str, words: str) -> None:
    page = site.page(f"{NEW}&{query}")
    assert page.text.count(words) == 2
    assert "Start" not in page.text
    (wrong,) = [given for name in ("input", "textarea") for given in page.named(name) if "aria-invalid" in given]
    assert "autofocus" in wrong


def test_begin_watch_stop_and_resume(site: Site, place: Place) -> None:
    answer = site.submit("/backfills/new", f"{NEW}&down=yes&concurrency=1&why=bugfix", "/backfills/new")
    assert (answer.status_code, answer.headers["location"]) == (303, "/backfills/1")
    page = site.page("/backfills/1")
    assert "0 of 4 runs done, 1 running." in page.text
    assert "Wave 1 core/shop 1 running, 1 waiting Wave 2 board/shop 2 waiting" in " ".join(page.text.split())
    assert "bugfix" in page.text
    assert "core/shop 2026-11-01 running" in page.text
    (row,) = site.page("/backfills?asset=s3://lake/core").rows[1:]
    assert row.startswith("Backfill 1 s3://lake/core and what lies below it running 0 of 4 runs done, 1 running")
    assert site.submit("/backfills/1/stop", "/backfills/1", "/backfills/1/stop").status_code == 303
    assert "stopped" in site.page("/backfills/1").text
    assert site.submit("/backfills/1/resume", "/backfills/1", "/backfills/1/resume").status_code == 303
    ((record, _),) = place.ledger.reader.decisions.waiting()
    place.ledger.writer.decisions.ended("Failed", place.later(), decision_id=record.id, outcome="failed")
    page = site.page("/backfills/1")
    assert "1 failed, 1 taken off" in page.text
    assert "core/shop 2026-11-01 failed" in page.text
    waiting = site.page("/backfills/1?state=todo").text
    assert "board/shop 2026-11-02 waiting waits for 1 run above it" in waiting


def test_a_switch_that_is_not_possible_changes_nothing(site: Site, place: Place) -> None:
    site.submit("/backfills/new", NEW, "/backfills/new")
    hidden = site.page("/backfills/1").form("/backfills/1/stop")
    for _ in range(2):
        record = place.ledger.reader.decisions.waiting()[0][0]
        place.ledger.writer.decisions.ended("Completed", place.later(), decision_id=record.id, outcome="completed")
    answer = site.post("/backfills/1/resume", data=hidden)
    assert answer.status_code == 409
    assert "Nothing was changed." in answer.text
    assert site.get("/backfills/1/stop").headers["location"] == "/backfills/1"
    assert site.post("/backfills/1/resume", data={}).status_code == 422
    assert place.ledger.reader.backfills.all()[0].state == "completed"
