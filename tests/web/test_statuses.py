"""The status of assets on the pages: the list, an asset's page, and the verdict on a consumer's (8.9, 8.16)."""

from datetime import timedelta
from uuid import uuid4

import pytest

from assetflow import Eager
from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceFlowRun
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.ledger import Ledger
from tests.cli.shop import NOON
from tests.ledger.making import A, B, C, deploy, deploy_maker, update
from tests.ledger.write.test_kept import BOARD, CORE, LEFT, RAW, Place, kept
from tests.web.conftest import MakeSite, Site


@pytest.fixture
def made(ledger: Ledger) -> Ledger:
    """B was made from A, which has changed since; C is missing."""
    deploy_maker(ledger, Eager(), [B], [A], "make-b/x", code_version="1")
    deploy_maker(ledger, Eager(), [C], [B], "make-c/x")
    for asset, version in ((A, "first"), (B, "made"), (A, "second")):
        ledger.writer.events.record([update(asset, data_version=version)], NOON)
    return ledger


@pytest.mark.usefixtures("made")
def test_the_pages_of_an_asset_its_source_and_its_reader_say_what_has_changed(site: Site) -> None:
    part = site.page("/asset/status", params={"asset": B.uri})
    assert "stale" in part.text
    assert f"{A.uri} changed: first → second, 0 s ago, not read yet." in part.text
    assert "make-c/x It waits for make-b/x" in " ".join(part.text.split())
    assert any(row.startswith("made") for row in part.rows)
    part = site.page("/asset/status", params={"asset": A.uri})
    assert "No flow makes this asset." in part.text
    assert [row.split()[0] for row in part.rows] == ["Read", "make-b/x", "Version", "second", "first"]
    text = site.page("/consumers/make-c/x").text
    assert f"It waits for make-b/x: {C.uri} was never made. Looked at next: when make-b/x ended." in text
    assert "Runs when what it was made from is out of date" in text
    assert "Queue" not in text


def test_the_page_of_a_status_has_the_causes_that_the_asset_page_leaves_out(site: Site, ledger: Ledger) -> None:
    sources = [Asset(f"s3://many/{number:02}") for number in range(12)]
    deploy_maker(ledger, Eager(), [B], sources, "make-b/x")
    for number, asset in enumerate((*sources, B, *sources)):
        ledger.writer.events.record([update(asset, data_version=f"v{number}")], NOON)
    params = {"asset": B.uri}
    part = site.get("/asset/status", params=params, headers={"hx-request": "true"}).text
    assert part.count("not read yet") == 10
    assert "2 more causes" in part
    assert site.get("/asset/status", params=params).text.count("not read yet") == 12


def test_an_asset_has_a_state_if_a_flow_keeps_assets_up_to_date(site: Site, ledger: Ledger) -> None:
    deploy(ledger, A)
    ledger.writer.events.record([update(A)], NOON)
    answer = site.get("/asset/status", params={"asset": A.uri})
    assert answer.status_code == 200
    assert "status-title" not in answer.text
    assert "/asset/status" not in site.get("/asset", params={"asset": A.uri}).text
    assert "State" not in site.page("/assets").text
    deploy_maker(ledger, Eager(), [B], [A], "make-b/x")
    rows = site.page("/assets").rows
    assert rows[0].startswith("Asset State Last update")
    assert f"{A.uri} source" in rows[1]
    assert f"{B.uri} missing" in rows[2]


def test_the_page_of_a_consumer_with_keys_lists_those_that_are_not_up_to_date(site: Site, ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(A, lookback=1, default_partition_mapper=IdentityMapper()), [B], [A], "make-b/x")
    for key in ("2", "1"):
        ledger.writer.events.record([update(A, partition_key=key)], NOON)
    page = site.page("/consumers/make-b/x")
    assert "Of 2 keys: 1 running and 1 too old for the lookback." in page.text
    assert [row.split()[0] for row in page.rows][:3] == ["Key", "2", "1"]


def test_the_map_of_partitions_has_what_is_stale(site: Site, ledger: Ledger) -> None:
    place = Place(ledger, NOON - timedelta(days=1))
    place.deploy("core/shop", kept([RAW], [CORE], mapper=IdentityMapper(), retries=0))
    for day in (1, 2, 3):
        for made in place.update(RAW, f"2025-12-0{day}"):
            place.run("core/shop", made, CORE)
    assert "Stale" not in site.page("/asset/partitions?asset=s3://lake/core").text
    for made in place.update(RAW, "2025-12-02"):
        place.end(made, "cancelled")
    page = site.page("/asset/partitions?asset=s3://lake/core")
    assert "Stale: 2025-12-02." in page.text
    assert "fresh 2 stale 1" in " ".join(page.text.split())
    cells = [given for _, given in page.tags if "cell-stale" in given.get("class", "").split() and "title" in given]
    assert [each["title"] for each in cells] == ["2025-12-02: updated, and an input has changed since"]


def test_the_activity_says_what_an_eager_flow_runs_for(site: Site, ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(), [B], [A], "make/x", code_version="1")
    told = "make/x runs because"
    for version, reason in (("1", "what it makes was missing"), ("2", "its code has changed")):
        deploy_maker(ledger, Eager(), [B], [A], "make/x", code_version=version)
        ledger.writer.events.record([update(A, data_version="first")], NOON)
        assert f"{told} {reason}" in " ".join(site.page("/activity?show=all").text.split())
        (decision,) = ledger.reader.decisions.find(limit=1)
        ledger.writer.decisions.ended("Completed", NOON, decision_id=decision.id, outcome="completed")
        run = SourceFlowRun(decision.id, "make/x", deployment_id=decision.deployment_id)
        made = update(B, code_version=version, inputs={A.uri: 1}, origin=Origin("task", flow_run=run))
        ledger.writer.events.record([made], NOON)
    ledger.writer.events.record([update(A, data_version="second")], NOON)
    assert f"{told} what it was made from has changed" in " ".join(site.page("/activity?show=all").text.split())


def test_an_assets_page_leads_to_the_source_that_its_data_time_has(make_site: MakeSite, ledger: Ledger) -> None:
    place = Place(ledger, NOON - timedelta(hours=1))
    policy = FreshnessPolicy(timedelta(hours=1), deadline="0 22 * * *")
    board = Asset(BOARD.uri, name="board", freshness=policy)
    place.deploy("core/shop", kept([RAW, LEFT], [CORE], on=()))
    place.deploy("board/shop", kept([CORE], [board], on=()))
    place.update(LEFT)
    place.update(RAW)
    read = {LEFT.uri: 1, RAW.uri: 2}
    for asset, pins in ((CORE, read), (board, {CORE.uri: 3})):
        event = AssetEvent(uuid4(), asset, place.later(), Origin("api"), inputs=pins)
        ledger.writer.events.record([Recording(uuid4(), (event,))], place.now)
    # The oldest change that was not read makes its data time.
    for source in (LEFT, RAW):
        place.later(600)
        place.update(source)
    ledger.writer.clock.run(NOON, NOON)
    site = make_site(now=lambda: NOON)
    page = site.page("/asset?asset=board")
    (path,) = [given for given in page.named("ol") if given.get("class") == "path"]
    assert path["aria-label"] == "What the data time follows from"
    assert f"Data time 49 min ago {CORE.uri} 49 min ago {LEFT.uri} source, 49 min ago" in page.text
    assert "Deadline 2026-01-01 22:00:00 UTC The asset will be too old then if nothing changes." in page.text


def test_a_key_of_a_consumer_says_what_its_last_run_tried(site: Site, ledger: Ledger) -> None:
    place = Place(ledger, NOON - timedelta(hours=1))
    place.deploy("core/shop", kept([RAW], [CORE], mapper=IdentityMapper(), retries=0))
    (made,) = place.update(RAW, "2026-01-01")
    place.end(made, "failed")
    (row,) = [row for row in site.page("/consumers/core/shop").rows if row.startswith("2026-01-01 Failed on this data")]
    assert "Its last run tried the inputs as of update 1" in row
