"""The page of trees: what triggered what."""

from datetime import timedelta
from uuid import UUID

from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from tests.cli.shop import NOON, deploy, event_id, update
from tests.web.conftest import MakeSite, Site
from tests.web.test_activity import RUN, SOURCE, ran
from tests.web.test_failed_runs import FAILED, Prefect

LETTERS = Asset("s3://lake/letters", name="letters")


def test_the_activity_shows_trees_and_each_has_an_address(site: Site, ledger: Ledger) -> None:
    decision = ran(ledger)
    page = site.page("/activity")
    assert "report/nightly" in page.text
    assert f"/activity/{SOURCE}" in page.links
    assert f"/runs/{RUN}" in page.links
    assert f"/events/{event_id(1)}" in page.links
    for address in ("customers", "s3:%2F%2Flake%2Fcustomers", event_id(2), 2):
        found = site.page(f"/activity/{address}")
        assert "What customers led to" in found.text
        assert "with orders" in found.text
        assert "1 run, done in" in found.text
    for number in (decision, RUN):
        assert "What report/nightly led to" in site.page(f"/activity/{number}").text
    assert site.get("/activity/ordres").status_code == 404


def alike(ledger: Ledger, number: int) -> list[UUID]:
    """Let runs of so many deployments of a flow fail on one update, and return them."""
    for each in range(number):
        deploy(ledger, f"mail/team-{each}", LETTERS)
    runs = [UUID(int=100 + each) for each in range(number)]
    for decision, run in zip(update(ledger, LETTERS, 1), runs, strict=True):
        ledger.writer.decisions.launched(decision.id, run, NOON)
        ledger.writer.decisions.ended("Failed", NOON + timedelta(minutes=5), flow_run_id=run)
    return runs


def test_runs_that_failed_alike_are_retried_together(make_site: MakeSite, ledger: Ledger) -> None:
    runs, prefect = alike(ledger, 5), Prefect()
    site = make_site(prefect=prefect.connect)
    tree = f"/activity/{event_id(1)}"
    for address in ("/activity", "/activity/letters"):
        assert "Retry all 5 mail" in [button.get("aria-label") for button in site.page(address).named("button")]
    assert f"/runs/{runs[4]}" in site.page(tree).links
    assert "and 2 more" in site.page("/activity").text
    prefect.runs = [FAILED | {"id": str(run)} for run in runs[:4]]
    done = site.submit(f"{tree}/retry", tree, f"{tree}/retry")
    assert "4 flow runs go on in Prefect" in site.page(done.headers["location"]).text
    assert [path for path, _ in prefect.asked] == [f"/flow_runs/{run}/set_state" for run in runs[:4]]
    prefect.runs, prefect.run = [], None
    refused = site.submit(f"{tree}/retry", tree, f"{tree}/retry")
    assert (refused.status_code, "None of the 5 flow runs can run again" in refused.text) == (409, True)
    assert site.get(f"{tree}/retry").headers["location"] == tree
    form = site.page(tree).form(f"{tree}/retry")
    assert site.post(f"{tree}/retry", data=form | {"runs": "no id"}).status_code == 409
