"""How pages put it: metrics in words and as small plots, sentences with times and ids as elements, the rest as text."""

from uuid import UUID

from assetflow.core.values.events import AssetEvent, CheckResult, Origin, Recording, Severity
from assetflow.ledger import Ledger
from assetflow.web.pages import told
from tests.cli.shop import NOON, ORDERS, event_id, update
from tests.web.conftest import Site

PAGE = f"/asset?asset={ORDERS.uri}"
SEEN: tuple[tuple[Severity, bool], ...] = (("error", True), ("warn", False), ("error", False))


def test_rule_12_7_the_history_of_each_check_is_plotted(site: Site, ledger: Ledger) -> None:
    found = [CheckResult("no_nulls(id)", severity, passed, "no nulls in id", found=2) for severity, passed in SEEN]
    for minute, result in zip((-9, -8), found, strict=False):
        update(ledger, ORDERS, minute, checks=(result,))
    refused = AssetEvent(event_id(-7), ORDERS, NOON, Origin("api"), checks=(found[2],))
    ledger.writer.events.record([Recording(refused.id, held_back=(refused,))], NOON)
    page = site.page(PAGE)
    labels = [each["aria-label"] for each in page.named("svg") if each.get("role") == "img"]
    assert "no_nulls(id) failed 2 of 3 times, and failed last" in labels
    assert [each["class"] for each in page.named("rect")] == ["good", "wait", "bad"]
    assert "held back: no_nulls(id): found 2, wanted no nulls in id" in site.page("/").text


ID = UUID("8accd21f-37da-4369-9225-57ff3ccd8b34")


def test_times_ids_and_commands_become_elements_and_the_rest_stays_text() -> None:
    text = f"waiting since 2026-01-01 12:00:00 UTC; satisfied by event {ID}, decision {ID}"
    assert told(text) == (
        'waiting since <time datetime="2026-01-01T12:00:00Z" title="2026-01-01 12:00:00 UTC" data-at>'
        "2026-01-01 12:00:00 UTC</time>; "
        f'satisfied by event <a class="said" href="/events/{ID}">8accd21f</a>, '
        f'decision <a class="said" href="/decisions/{ID}">8accd21f</a>'
    )
    assert told('<script>"x"</script> & \u202e') == "&lt;script&gt;&#34;x&#34;&lt;/script&gt; &amp; \\u202e"
    assert told(f"the asset s3://lake/{ID}") == f"the asset s3://lake/{ID}"
    assert told("`assetflow assets ls` lists the assets") == '<a href="/assets">Assets</a> lists the assets'
    again = f'Replay it with <a href="/decisions/{ID}">Try again</a>.'
    assert told(f"Replay it with `assetflow queue replay {ID}`.") == again
    start = "start one with `assetflow evaluator start`"
    assert told(start) == "start one with <code>assetflow evaluator start</code>"
