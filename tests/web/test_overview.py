"""The start page: what needs a person, what waits and for what, and what just happened."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from socket import gethostname
from typing import Any
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceTaskRun
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.wire import FlowDeclaration
from assetflow.ledger import Ledger
from assetflow.ledger.lease import Holder
from tests.api.fake_prefect import FakePrefect
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, update
from tests.ledger.read.test_ended_runs import ended
from tests.ledger.write.test_declared import declare
from tests.ledger.write.test_kept import Place, kept
from tests.ledger.write.test_lazy import lazy
from tests.web.conftest import MakeSite, Site
from tests.web.html import read

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("/", ("Nothing is deployed yet", "assetflow emit")),
        ("/assets", ("No assets yet", "assetflow emit s3://shop/orders")),
        ("/consumers", ("No consumers yet", "@flow(schedule=orders & customers)")),
        ("/activity", ("Nothing happened yet",)),
    ],
)
def test_an_empty_page_says_what_to_do_first(site: Site, page: str, words: tuple[str, ...]) -> None:
    text = site.page(page).text
    assert [each for each in words if each not in text] == []


def test_what_waits_longest_comes_first_with_what_it_needs(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "both/shop", ORDERS & CUSTOMERS)
    deploy(ledger, "later/shop", CUSTOMERS & Asset("s3://lake/x", name="x"))
    deploy(ledger, "daily/shop", ROLLED_UP)
    update(ledger, ORDERS, 0)
    update(ledger, HOURLY, 1, "2026-01-01T05:00:00")
    text = site.page("/").text
    assert "both/shop still needs customers" in text
    assert "daily/shop 2026-01-01 still needs hourly (1 of 24 keys" in text
    assert text.index("both/shop") < text.index("daily/shop")
    assert "2 of 2" in text
    update(ledger, CUSTOMERS, 2)
    assert "later/shop still needs x" in site.page("/").text


def test_what_needs_a_person_leads_to_lists_of_it(site: Site, ledger: Ledger) -> None:
    ok = deploy(ledger, "fine/shop", ORDERS)
    deploy(ledger, "broken/shop", ORDERS)
    stopped = deploy(ledger, "stopped/shop", CUSTOMERS, while_paused="keep")
    ledger.writer.consumers.switch(stopped.id, paused=True, now=NOON)
    update(ledger, CUSTOMERS, 1)
    for decision in update(ledger, ORDERS, 2):
        run = uuid4()
        ledger.writer.decisions.launched(decision.id, run, NOON)
        state, outcome = ("Completed", "completed") if decision.consumer == ok.id else ("Failed", "failed")
        ledger.writer.decisions.ended(state, NOON, flow_run_id=run, outcome=outcome)
        ledger.writer.ended_runs.add([ended(decision.deployment_id, 1, outcome)], NOON)
    page = site.page("/")
    assert "paused stopped/shop 1 update queued meanwhile" in page.text
    failed = site.page("/consumers?show=failed")
    assert [row.split()[0] for row in failed.rows[1:]] == ["broken/shop"]
    assert [row.split()[0] for row in site.page("/consumers?show=waiting").rows[1:]] == ["stopped/shop"]


def test_what_is_too_old_is_one_click_away_and_says_what_is_being_done(make_site: MakeSite, ledger: Ledger) -> None:
    late = Asset("s3://lake/late", name="late", freshness=FreshnessPolicy(timedelta(hours=1)))
    soon = Asset("s3://lake/soon", name="soon", freshness=FreshnessPolicy(timedelta(hours=1), deadline="0 22 * * *"))
    deploy(ledger, "make/late", ORDERS, produces=(late, soon))
    update(ledger, ORDERS, 0)
    update(ledger, late, 1)
    update(ledger, soon, 2)
    later = NOON + timedelta(hours=9)
    ledger.writer.clock.run(later, later)
    site = make_site(now=lambda: later)
    page = site.page("/")
    assert "fail late 8 h old, and has to be at most 1 h old. make/late: a run is asked for" in page.text
    told = "fails soon soon at its deadline, 2026-01-01 22:00:00 UTC, if nothing changes. make/late: a run is asked for"
    assert told in page.text
    assert "/assets?show=old" in page.links
    assert [row.split()[0] for row in site.page("/assets?show=old").rows[1:]] == ["late"]
    assert [row.split()[0] for row in site.page("/assets?show=soon").rows[1:]] == ["soon"]
    (decision,) = ledger.reader.decisions.find()
    ledger.writer.decisions.launched(decision.id, uuid4(), NOON)
    assert "make/late: a run goes on" in site.page("/").text


def test_an_old_asset_whose_flow_has_nothing_to_do_names_its_source(make_site: MakeSite, ledger: Ledger) -> None:
    place = Place(ledger, NOON)
    raw = Asset("s3://lake/raw", name="raw")
    fact, board = (
        Asset(f"s3://lake/{name}", name=name, freshness=FreshnessPolicy(timedelta(minutes=10), warn_after=MINUTE))
        for name in ("fact", "board")
    )
    place.deploy("core/shop", kept([raw], [fact]))
    place.deploy("board/shop", kept([fact], [board]))
    seen = AssetEvent(uuid4(), raw, place.later(), Origin("task"), data_version="1")
    ((_, asked),) = ledger.writer.events.record([Recording(uuid4(), observed=(seen,))], place.now)
    looked = place.now
    for made in place.run("core/shop", asked[0], fact):
        place.run("board/shop", made, board)
    later = looked + timedelta(seconds=178)
    ledger.writer.clock.run(later, later)
    text = " ".join(make_site(now=lambda: later).page("/").text.split())
    told = "2 min old, and has to be at most 10 min old. board/shop has nothing to do: raw is from 2 min ago"
    assert f"warn board {told}" in text


@pytest.mark.parametrize("declared", [lazy, kept])
def test_what_a_lazy_flow_makes_is_in_time(
    make_site: MakeSite, ledger: Ledger, declared: Callable[..., FlowDeclaration]
) -> None:
    place = Place(ledger, NOON - timedelta(hours=2))
    board = Asset("s3://lake/board", freshness=FreshnessPolicy(timedelta(hours=1), deadline="0 22 * * *"))
    place.deploy("board/shop", declared([ORDERS], [board]))
    for made in place.update(ORDERS):
        place.run("board/shop", made, board)
    # An Eager flow fails, and a Lazy one waits until it is due.
    for made in place.update(ORDERS):
        place.end(made, "failed")
    (policy,) = ledger.reader.policies.all()
    assert policy.too_old_at(place.now) is not None
    assert policy.record.due is not None
    shown = "fails soon" in make_site(now=lambda: place.now).page("/").text
    assert shown == (declared is kept)


@pytest.mark.parametrize("while_paused", ["drop", "keep"])
def test_every_consumer_that_is_paused_is_listed(site: Site, ledger: Ledger, while_paused: str) -> None:
    stopped = deploy(ledger, "stopped/shop", ORDERS, while_paused=while_paused)
    ledger.writer.consumers.switch(stopped.id, paused=True, now=NOON)
    words = "updates are dropped meanwhile" if while_paused == "drop" else "nothing is queued"
    page = site.page("/")
    assert f"paused stopped/shop {words}" in page.text
    assert "/consumers?show=inactive" in page.links


def all_are_late(_path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    state = {"name": "Late", "type": "SCHEDULED"}
    row = {"state_type": "SCHEDULED", "state": state, "next_scheduled_start_time": NOON.isoformat()}
    return [{"id": run, "work_pool_name": "laptop", **row} for run in body["flow_runs"]["id"]["any_"]]


def test_late_runs_stay_when_the_page_is_refreshed(make_site: MakeSite, ledger: Ledger) -> None:
    deploy(ledger, "report/shop", ORDERS)
    (decision,) = update(ledger, ORDERS, 0)
    ledger.writer.decisions.launched(decision.id, uuid4(), NOON)
    ledger.writer.lease.acquire(Holder(uuid4(), gethostname(), os.getpid()), datetime.now(UTC), seconds=3600)
    pool = FakePrefect(all_are_late)
    site = make_site(prefect=pool.connect, now=lambda: NOON + timedelta(minutes=5))
    assert site.get("/overview/late-runs").headers["location"] == "/"
    page = site.page("/")
    assert "No failures, no late runs, nothing too old, and no paused or held consumer." in page.text
    (asks,) = [each["hx-get"] for each in page.named("div") if each.get("id") == "late-runs"]
    part = read(site.get(asks, headers={"hx-request": "true"}).text)
    assert (
        "late run report/shop It has been waiting since 2026-01-01 12:00:00 UTC for a worker of the work pool laptop"
        in part.text
    )
    assert "/activity?show=late" in part.links
    refreshed = site.get("/", headers={"hx-request": "true"})
    assert "late run report/shop" in read(refreshed.text).text
    assert "report/shop runs" in site.page("/activity?show=late").text
    assert len(pool.asked) == 1


def test_a_part_without_late_runs_says_that_nothing_needs_a_person(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "report/shop", ORDERS)
    part = site.get("/overview/late-runs?alone=true", headers={"hx-request": "true"})
    assert "No failures" in part.text
    assert site.get("/overview/late-runs", headers={"hx-request": "true"}).text.strip() == ""


def test_updates_of_one_recording_are_one_row_with_all_receipts(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "report/shop", ORDERS & Asset("s3://lake/absent"))
    moment = NOON + timedelta(minutes=1)
    hours = [AssetEvent(uuid4(), HOURLY, moment, Origin("api"), partition_key=f"2026-01-01T{n:02}") for n in range(24)]
    tables = [AssetEvent(uuid4(), each, moment, Origin("watcher", by="landing")) for each in (ORDERS, CUSTOMERS)]
    ledger.writer.events.record([Recording(uuid4(), tuple(hours))], moment)
    ledger.writer.events.record([Recording(uuid4(), tuple(tables))], moment + timedelta(minutes=1))
    for path in ("/", "/activity?show=all"):
        text = site.page(path).text
        assert "hourly 24 partitions 2026-01-01T00 … 2026-01-01T23 newest event by the API nothing runs on it" in text
        assert "customers, orders newest event by landing nothing runs on it queued" in text


def test_the_updates_of_one_task_are_one_row(site: Site, ledger: Ledger) -> None:
    origin = Origin("task", SourceTaskRun(uuid4(), "write-abc"))
    for hour in range(71):
        update(ledger, HOURLY, hour, f"2026-01-{1 + hour // 24:02}T{hour % 24:02}:00:00", origin=origin)
    update(ledger, ORDERS, 100)
    for path in ("/", "/activity?show=all"):
        page = site.page(path)
        assert "hourly 71 partitions 2026-01-01T00:00:00 … 2026-01-03T22:00:00" in page.text
        assert page.text.count("by task write-abc") == 1


def test_before_the_first_update_it_shows_three_steps_and_no_alarm(site: Site, ledger: Ledger) -> None:
    declare(ledger, ORDERS)
    deploy(ledger, "report/shop", ORDERS)
    page = site.page("/")
    assert "The first update Run a flow that makes an asset: prefect deployment run 'ingest/hourly' Copy" in page.text
    assert "report/shop" not in page.text.partition("Needs you")[2].partition("Waiting longest")[0]
    update(ledger, ORDERS, 1)
    assert "The first update" not in site.page("/").text


@pytest.mark.parametrize(
    ("address", "words"),
    [("/consumers?offset=-3", "offset is less than 0"), ("/runs?before=x", "before is not a whole number")],
)
def test_an_address_that_is_wrong_is_told_in_the_words_of_pages(site: Site, address: str, words: str) -> None:
    answer = site.get(address)
    assert answer.status_code == 422
    assert f"In the address of this page, {words}. Mend the address" in read(answer.text).text
