"""The status of assets on the pages: the list, an asset's page, and the verdict on a consumer's (8.9, 8.16)."""

from datetime import timedelta
from uuid import uuid4

import pytest

from assetflow import Eager
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.ledger import Ledger
from tests.cli.shop import NOON
from tests.ledger.making import A, B, C, deploy_maker, update
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
