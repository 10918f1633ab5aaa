"""What an action would lead to is what it then leads to, and asking changes nothing."""

import random
from datetime import timedelta

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import AssetAll, AtLeast, Times
from assetflow.core.values.events import AssetEvent, Origin, Recording, event_by_hand
from assetflow.core.values.timing import Intake
from assetflow.ledger import Ledger
from assetflow.operations.what_if import if_backfilled, if_resumed, if_run, if_updated
from tests.cli.conftest import Call
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, event_id, update
from tests.web.conftest import Site
from tests.web.html import read

REPORT = Asset("s3://lake/report", name="report")
BOARD = Asset("s3://lake/board", name="board")


def an_update(asset: Asset, key: str | None = None, minute: int = 900) -> AssetEvent:
    return event_by_hand(asset, id=event_id(minute), occurred=NOON, origin=Origin("api"), partition_key=key)


def chain(ledger: Ledger) -> None:
    """Orders start `report`, which makes the asset that starts `board`; `both` needs customers too."""
    deploy(ledger, "report/shop", ORDERS, produces=(REPORT,))
    deploy(ledger, "both/shop", ORDERS & CUSTOMERS)
    deploy(ledger, "board/shop", REPORT, produces=(BOARD,))
    deploy(ledger, "wall/shop", BOARD)


def test_an_update_starts_some_and_tells_what_the_others_still_need(ledger: Ledger) -> None:
    chain(ledger)
    before = ledger.reader.status()
    preview = if_updated(ledger.reader, [an_update(ORDERS)], NOON)
    assert [(run.consumer, run.updates) for run in preview.starts] == [("report/shop", 1)]
    assert [(each.consumer, each.words) for each in preview.waits] == [("both/shop", "still needs customers")]
    assert preview.further == ("board/shop", "wall/shop")
    assert preview.further_words == "2 flows lie further down."
    assert ledger.reader.status() == before, "nothing is written"


def test_what_is_queued_already_counts(ledger: Ledger) -> None:
    deploy(ledger, "both/shop", ORDERS & CUSTOMERS)
    for minute in (1, 2):
        update(ledger, CUSTOMERS, minute)
    (run,) = if_updated(ledger.reader, [an_update(ORDERS)], NOON).starts
    assert run.updates == 3, "a decision consumes everything that is queued"
    what = if_updated(ledger.reader, [an_update(CUSTOMERS, minute=1)], NOON)
    assert (what.known, what.starts) == (True, ()), "it is recorded"


def test_what_many_flows_refuse_for_one_reason_is_one_sentence(ledger: Ledger) -> None:
    for name in ("daily/a", "daily/b", "daily/c"):
        deploy(ledger, name, ROLLED_UP)
    (words,) = if_updated(ledger.reader, [an_update(HOURLY, "{}")], NOON).refused
    assert words.startswith("not queued for daily/a, whose mapper could not use the key: The partition key '{}' does")
    assert words.endswith("; so with 2 more flows")


@pytest.mark.parametrize(
    ("schedule", "updated", "words"),
    [
        (ORDERS & (CUSTOMERS | HOURLY), (ORDERS,), "still needs customers or hourly"),
        (AtLeast(2, ORDERS, CUSTOMERS, HOURLY), (ORDERS,), "still needs 1 of customers, hourly"),
        (Times(ORDERS, 3), (ORDERS,), "still needs 2 more updates of orders"),
        (AssetAll(ORDERS, CUSTOMERS, HOURLY), (ORDERS,), "still needs customers and hourly"),
        (ROLLED_UP, (HOURLY, "2026-01-01T05:00:00"), "still needs hourly (1 of 24 keys; missing "),
    ],
)
def test_every_kind_of_condition_says_what_it_lacks(
    ledger: Ledger, schedule: object, updated: tuple[Asset, str], words: str
) -> None:
    deploy(ledger, "report/shop", schedule)
    (queue,) = if_updated(ledger.reader, [an_update(*updated)], NOON).waits
    assert queue.words.startswith(words)
    assert queue.target_key == ("2026-01-01" if schedule is ROLLED_UP else None)


def test_a_debounced_consumer_says_until_when_and_a_key_that_it_does_not_take_is_refused(ledger: Ledger) -> None:
    deploy(ledger, "report/shop", ORDERS, intake=Intake(debounce=timedelta(minutes=10)))
    (queue,) = if_updated(ledger.reader, [an_update(ORDERS)], NOON).waits
    assert queue.words.startswith("waits until 2026-01-01 12:10:00 UTC")
    what = if_updated(ledger.reader, [an_update(ORDERS, "a")], NOON)
    assert what.refused == ("not for report/shop, which takes no updates with a partition key",)


def test_a_paused_consumer_says_so_and_a_resume_starts_it(ledger: Ledger) -> None:
    consumer = deploy(ledger, "report/shop", ORDERS, while_paused="keep", produces=(REPORT,))
    deploy(ledger, "board/shop", REPORT)
    ledger.writer.consumers.switch(consumer.id, paused=True, now=NOON)
    (queue,) = if_updated(ledger.reader, [an_update(ORDERS)], NOON).waits
    assert queue.words == "is paused"
    update(ledger, ORDERS, 1)
    record = ledger.reader.consumers.get(consumer.id)
    assert record is not None
    preview = if_resumed(ledger.reader, record, NOON)
    assert [(run.consumer, run.updates) for run in preview.starts] == [("report/shop", 1)]
    assert preview.further == ("board/shop",)
    assert ledger.reader.decisions.find() == []
    _, decisions = ledger.writer.consumers.switch(consumer.id, paused=False, now=NOON)
    assert len(decisions) == 1


def test_a_run_or_a_backfill_starts_what_its_outlets_start(ledger: Ledger) -> None:
    chain(ledger)
    preview = if_run(ledger.reader, "report/shop", [None], NOON)
    assert [run.consumer for run in preview.starts] == ["board/shop"]
    assert (preview.updates, preview.further) == ((REPORT.uri,), ("wall/shop",))
    preview = if_backfilled(ledger.reader, [{"report/shop": [None]}], NOON)
    assert [run.consumer for run in preview.starts] == ["board/shop"]
    assert preview.further == ("wall/shop",)
    both = if_backfilled(ledger.reader, [{"report/shop": [None]}, {"board/shop": [None]}], NOON)
    assert [run.consumer for run in both.starts] == ["wall/shop"]
    assert both.further == ()
    assert both.updates == (REPORT.uri, BOARD.uri)


def test_the_dialogs_of_run_now_and_materialize_tell_what_follows(ledger: Ledger, site: Site) -> None:
    chain(ledger)
    before = ledger.reader.status()
    asset = f"/asset/materialize/preview?asset={REPORT.uri}&partition_key="
    for address in (asset, f"{asset}&producer=report/shop", "/consumers/report/shop/run/preview?partition_key="):
        part = site.get(address, headers={"hx-request": "true"}).text
        assert "<html" not in part
        words = " ".join(read(part).text.split())
        assert "When it has completed starts board/shop with 1 update 1 flow lies further down." in words
    assert "No consumer waits for what it makes." in site.get("/consumers/wall/shop/run/preview").text
    refused = site.get(f"/asset/materialize/preview?asset={REPORT.uri}&partition_key=%20").text
    assert "The partition key is blank" in refused
    assert ledger.reader.status() == before


def test_the_dialog_that_resumes_several_tells_what_they_start(ledger: Ledger, site: Site) -> None:
    chain(ledger)
    kept = [deploy(ledger, f"kept/{name}", ORDERS, while_paused="keep") for name in ("a", "b")]
    for each in kept:
        ledger.writer.consumers.switch(each.id, paused=True, now=NOON)
    update(ledger, ORDERS, 1)
    dialog = site.page("/consumers/switch?show=paused&paused=no")
    (asks,) = [each for each in dialog.named("div") if each.get("hx-get") == "/consumers/switch/preview"]
    assert (asks["hx-include"], asks["hx-trigger"].split(",")[0]) == ("closest form", "load")
    part = site.get(asks["hx-get"], params={"names": "kept/a\nkept/b", "paused": "no"}, headers={"hx-request": "true"})
    words = " ".join(read(part.text).text.split())
    assert "If you resume them now starts kept/a with 1 update starts kept/b with 1 update" in words
    assert "/consumers/switch/preview" not in site.get("/consumers/switch?show=active&paused=yes").text


def test_what_is_told_is_what_happens(ledger: Ledger) -> None:
    """Random conditions and updates: each is asked first, then recorded, and both lead to the same runs."""
    chance = random.Random(22)
    assets = [Asset(f"s3://lake/{letter}", name=letter) for letter in "abcde"]
    for number in range(12):
        chosen = chance.sample(assets, 3)
        schedule = chance.choice([chosen[0] & (chosen[1] | chosen[2]), chosen[0] | chosen[1], AtLeast(2, *chosen)])
        deploy(ledger, f"flow{number}/shop", schedule)
    for minute in range(60):
        event = an_update(chance.choice(assets), minute=minute)
        told = if_updated(ledger.reader, [event], NOON).starts
        ((_, decisions),) = ledger.writer.events.record([Recording(event.id, (event,))], NOON)
        names = {each.consumer: f"flow{each.consumer - 1}/shop" for each in decisions}
        assert [(run.consumer, run.updates) for run in told] == [
            (names[each.consumer], len(each.events)) for each in decisions
        ]


def test_the_command_and_the_api_and_the_page_tell_the_same(ledger: Ledger, call: Call, site: Site) -> None:
    chain(ledger)

    answer = call("emit", ORDERS.uri, "--dry-run")
    asked = site.post("/api/v1/events?preview=true", json={"events": [{"uri": ORDERS.uri}]}).json()
    page = site.get(f"/asset/events/preview?asset={ORDERS.uri}", headers={"hx-request": "true"}).text

    assert answer.out.splitlines() == [
        "Nothing is written. This would happen:",
        "  report/shop runs now, with 1 update",
        "  both/shop still needs customers",
        "  2 flows lie further down.",
    ]
    assert asked["starts"] == [{"consumer": "report/shop", "target_key": None, "updates": 1}]
    assert asked["further"] == ["board/shop", "wall/shop"]
    assert call("emit", ORDERS.uri, "--dry-run", "--json").json == asked
    for words in ("report/shop", "still needs customers", "2 flows lie further down."):
        assert words in page
    assert ledger.reader.events.count() == 0


def test_a_preview_names_the_field_that_would_be_refused(ledger: Ledger, site: Site) -> None:
    deploy(ledger, "report/shop", ORDERS)
    answer = site.post("/api/v1/events?preview=true", json={"events": [{"uri": "s3://x", "extra": {"a": 2**64}}]})
    assert answer.status_code == 422
    assert "64 bits" in answer.text
    page = site.get(f"/asset/events/preview?asset={ORDERS.uri}&partition_key=%20")
    assert "The partition key is blank" in page.text


def test_the_page_of_a_paused_consumer_tells_what_a_resume_would_start(ledger: Ledger, site: Site) -> None:
    consumer = deploy(ledger, "report/shop", ORDERS, while_paused="keep")
    address = "/consumers/report/shop"
    assert "If you resume it now" not in site.page(address).text
    update(ledger, ORDERS, 1)
    ledger.writer.consumers.switch(consumer.id, paused=True, now=NOON)
    assert "If you resume it now Nothing is queued" in " ".join(site.page(address).text.split())
    update(ledger, ORDERS, 2)
    assert "If you resume it now starts report/shop with 1 update" in " ".join(site.page(address).text.split())
    asked = site.post("/api/v1/consumers/report/shop/resume?preview=true", json={}).json()
    assert [each["consumer"] for each in asked["starts"]] == ["report/shop"]
