"""The start page: what needs a person, what waits and for what, and what just happened."""

import os
from datetime import UTC, datetime, timedelta
from socket import gethostname
from typing import Any
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.ledger import Ledger
from assetflow.ledger.lease import Holder
from tests.api.fake_prefect import FakePrefect
from tests.cli.shop import NOON, ORDERS, deploy, update
from tests.web.conftest import MakeSite, Site
from tests.web.html import read


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


@pytest.mark.parametrize(
    ("address", "words"),
    [("/consumers?offset=-3", "offset is less than 0"), ("/runs?before=x", "before is not a whole number")],
)
def test_an_address_that_is_wrong_is_told_in_the_words_of_pages(site: Site, address: str, words: str) -> None:
    answer = site.get(address)
    assert answer.status_code == 422
    assert f"In the address of this page, {words}. Mend the address" in read(answer.text).text
