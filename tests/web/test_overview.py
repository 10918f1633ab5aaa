"""The start page: what needs a person, what waits and for what, and what just happened."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from assetflow.core.assets import Asset
from assetflow.core.events import Origin, SourceTaskRun
from assetflow.core.freshness.policy import FreshnessPolicy
from assetflow.ledger import Ledger
from tests.api.test_scale import statements
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, update
from tests.web.conftest import MakeSite, Site


def test_an_empty_installation_says_what_to_do_first(site: Site) -> None:
    page = site.page("/")
    assert "Nothing is deployed yet" in page.text
    assert "assetflow emit" in page.text


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
    page = site.page("/")
    assert "failed broken/shop its last run" in page.text
    assert "paused stopped/shop 1 update queued meanwhile" in page.text
    assert "fine/shop its last run" not in page.text
    failed = site.page("/consumers?show=failed")
    assert [row.split()[0] for row in failed.rows[1:]] == ["broken/shop"]
    assert [row.split()[0] for row in site.page("/consumers?show=waiting").rows[1:]] == ["stopped/shop"]


def test_an_undeliverable_decision_is_listed_with_its_error(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "report/shop", ORDERS)
    (decision,) = update(ledger, ORDERS, 1)
    ledger.writer.decisions.undeliverable(decision.id, "Prefect refused it", NOON)
    assert "undeliverable report/shop Prefect refused it" in site.page("/").text
    assert "report/shop" in site.page("/activity?show=undeliverable").text
    assert "Nothing matches" in site.page("/activity?show=undeliverable&consumer=report/shop&decisions=1").text


def test_late_assets_are_one_click_away(make_site: MakeSite, ledger: Ledger) -> None:
    late = Asset("s3://lake/late", name="late", freshness=FreshnessPolicy(timedelta(hours=1)))
    deploy(ledger, "make/late", ORDERS, produces=(late,))
    update(ledger, ORDERS, 0)
    update(ledger, late, 1)
    later = NOON + timedelta(hours=9)
    ledger.writer.clock.run(later, later)
    site = make_site(now=lambda: NOON + timedelta(hours=9))
    page = site.page("/")
    assert "late s3://lake/late" in page.text
    assert [row.split()[0] for row in site.page("/assets?late=true").rows[1:]] == ["late"]


def test_the_updates_of_one_task_are_one_row(site: Site, ledger: Ledger) -> None:
    origin = Origin("task", SourceTaskRun(uuid4(), "write-abc"))
    for hour in range(71):
        update(ledger, HOURLY, hour, f"2026-01-{1 + hour // 24:02}T{hour % 24:02}:00:00", origin=origin)
    update(ledger, ORDERS, 100)
    for path in ("/", "/activity"):
        page = site.page(path)
        assert "hourly 71 partitions 2026-01-01T00:00:00 … 2026-01-03T22:00:00" in page.text
        assert page.text.count("by task write-abc") == 1


def test_the_number_of_statements_does_not_grow(site: Site, ledger: Ledger) -> None:
    counts: list[int] = []
    for size in (8, 40):
        for number in range(size):
            asset = Asset(f"s3://lake/{size}/{number}")
            deploy(ledger, f"flow-{size}/{number}", asset & CUSTOMERS)
            deploy(ledger, f"run-{size}/{number}", asset)
            update(ledger, asset, size * 100 + number)
        with statements() as asked:
            assert site.get("/").status_code == 200
        counts.append(len([each for each in asked if each.startswith("SELECT")]))
    assert counts[0] == counts[1] <= 41
