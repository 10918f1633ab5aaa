"""Eager flows are explained as well as those that updates start: what a run read, what is held back, another time."""

from dataclasses import replace
from datetime import timedelta

from assetflow.core.partitions import IdentityMapper
from assetflow.ledger import Ledger
from assetflow.prefect_io.recordings import learned_from_prefect_event
from tests.cli.conftest import Call
from tests.cli.shop import NOON
from tests.ledger.read.test_ended_runs import ended
from tests.ledger.write.test_kept import CORE, RAW, Place, kept
from tests.prefect_io.test_own_events import MADE, native
from tests.web.conftest import Site

CORE_FLOW = "/consumers/core/shop"


def test_a_run_says_which_versions_it_read(site: Site, ledger: Ledger, call: Call) -> None:
    place = Place(ledger, NOON - timedelta(hours=1))
    place.deploy("core/shop", kept([RAW], [CORE], retries=0))
    (first,) = place.update(RAW, version="monday")
    place.run("core/shop", first, CORE)
    (second,) = place.update(RAW, version="tuesday")
    place.make("core/shop", second)
    place.end(second, "failed")
    made = ledger.reader.decisions.get(second.id)
    assert made is not None
    page = site.page(f"/runs/{made.flow_run_id}")
    (row,) = [row for row in page.rows if row.startswith(RAW.uri)]
    assert "monday → tuesday" in row
    newest = ledger.reader.events.find(newest_first=True, limit=1)[0]
    assert f"/events/{newest.id}" in page.links
    assert "monday → tuesday" in call("explain", "--run", str(made.flow_run_id)).out


def test_a_flow_that_failed_says_so_in_every_list_and_is_tried_again(site: Site, ledger: Ledger, call: Call) -> None:
    place = Place(ledger, NOON - timedelta(hours=1))
    place.deploy("core/shop", kept([RAW], [CORE], code="v7", retries=0))
    (made,) = place.update(RAW)
    assert "runs, since" in site.page("/consumers").rows[1]
    place.end(made, "failed")
    assert "failed on this data" in site.page("/consumers").rows[1]
    assert call("consumers", "ls", "--json").json[0]["words"] == "failed on this data"
    told = call("explain", "core").out
    assert "Failed on this data" in told
    assert "Its last run tried the inputs as of update 1" in told
    page = site.page(CORE_FLOW).text
    assert "Its last run tried the inputs as of update 1, with the code v7, until 2026-01-01" in page
    assert ", and failed." in page
    done = site.submit(f"{CORE_FLOW}/retry", CORE_FLOW, f"{CORE_FLOW}/retry")
    assert "1 run was asked for." in site.page(done.headers["location"]).text
    assert len(ledger.reader.decisions.find()) == 2


def test_a_key_that_failed_leads_to_its_run(site: Site, ledger: Ledger) -> None:
    place = Place(ledger, NOON - timedelta(days=1))
    place.deploy("core/shop", kept([RAW], [CORE], mapper=IdentityMapper(), retries=0))
    for day in (1, 2):
        for made in place.update(RAW, f"2025-12-0{day}"):
            place.make("core/shop", made, *([CORE] if day == 1 else []))
            place.end(made, "completed" if day == 1 else "failed")
    (cell,) = [
        given["href"]
        for _, given in site.page(f"/asset/partitions?asset={CORE.uri}").tags
        if "cell-failed" in given.get("class", "").split() and "href" in given
    ]
    (failed,) = [each for each in ledger.reader.decisions.find() if each.target_key == "2025-12-02"]
    decision = site.get(cell).headers["location"]
    assert decision == f"/decisions/{failed.id}"
    assert site.get(decision).headers["location"] == f"/runs/{failed.flow_run_id}"
    page = site.page(f"{CORE_FLOW}?key=2025-12-02")
    assert "Partition 2025-12-02 failed." in page.text
    assert "Failed on this data" in page.text
    assert decision in page.links
    assert [row for row in page.rows if "2025-12-01" in row] == [], "the list is that of the key"


def test_rule_2_9_a_failure_that_prefect_tells_of_is_a_failed_maker(site: Site, ledger: Ledger, call: Call) -> None:
    learned = learned_from_prefect_event(native("materialization.failed"))
    assert learned is not None
    ledger.writer.lineage.learn(learned, NOON)
    ledger.writer.ended_runs.add([replace(ended(learned.deployment_id, 1), error="model broke")], NOON)
    told = "dbt/nightly failed at 2026-01-01 12:01:00 UTC: model broke"
    assert told in call("explain", "--asset", MADE.uri).out
    page = site.page(f"/asset?asset={MADE.uri}").text
    assert ("dbt/nightly" in page, "model broke" in page) == (True, True)
