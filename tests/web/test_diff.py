"""The page of what a deploy would change shows the stages that the terminal and Markdown show."""

from datetime import datetime

import pytest

from assetflow.core.compare import CURSOR, ShownDiff, stages_of
from assetflow.core.compare.changes import Comparison, ConsumerChange, LostAsset, Replayed, RunAtOnce, RunDiffers
from assetflow.core.shapes import as_json
from assetflow.ledger import Ledger
from tests.cli.shop import CUSTOMERS, NOON, ORDERS
from tests.web.conftest import Site

EVERYTHING = Comparison(
    consumers=(
        ConsumerChange(
            "changed",
            "report/nightly",
            "orders AND customers",
            "(orders AND customers) within 6 h of each other",
            superseded={ORDERS.uri: 2, CUSTOMERS.uri: 1},
            mapped_anew=3,
        ),
        ConsumerChange("added", "tables/core", None, "Eager", automation="made", begins_eager=True),
        ConsumerChange("removed", "old/shop", "customers", automation="removed"),
        ConsumerChange("renamed", "invoices/shop", "orders", "orders", was="bills/shop", automation="made"),
        ConsumerChange(
            "refused",
            "stock/shop",
            None,
            "stock",
            refused="the name 'stock' belongs to s3://lake/stock",
            fix="Choose another name.",
        ),
    ),
    runs=(RunAtOnce("tables/rolled", "2026-01-01", "its code has another version"),),
    assets=(LostAsset(ORDERS.uri, "producer"), LostAsset(CUSTOMERS.uri, "consumer")),
    unchanged=12,
    problems={"flows/broken.py:report": "cannot be imported: ModuleNotFoundError: No module named 'nowhere'"},
    replayed=(
        Replayed(
            "report/nightly",
            NOON,
            7,
            6,
            0,
            1,
            RunDiffers(NOON, None, "gone", "customers came 6 h 20 min after orders: outside of within 6 h"),
        ),
        Replayed("tables/core", NOON, note="Eager and Lazy flows are not replayed"),
        Replayed("invoices/shop", NOON, 3, 3, after_deploy=True),
    ),
)


def keep_diff(ledger: Ledger, now: datetime = NOON) -> None:
    """Keep it for the page."""
    kept = ShownDiff(now, "/srv/shop", "anna", tuple(stages_of(EVERYTHING)))
    ledger.writer.set_cursor(CURSOR, as_json(kept))


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
