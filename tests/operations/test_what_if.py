"""What an action would lead to is what it then leads to, and asking changes nothing."""

import random

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import AssetAll, AtLeast, Times
from assetflow.core.values.events import AssetEvent, Origin, Recording, event_by_hand
from assetflow.ledger import Ledger
from assetflow.operations.what_if import if_updated
from tests.cli.conftest import Call
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, event_id
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
