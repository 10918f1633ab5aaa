"""A day on which fifteen runs fail: all are listed, and each that was not made good needs a person. Contract 4.9."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from assetflow.core.partitions import IdentityMapper
from assetflow.core.rules.ended_runs import EndedRun
from assetflow.core.values.assets import Asset
from assetflow.core.values.timing import Deadline
from assetflow.ledger import Ledger
from assetflow.ledger.read.explanations import consumer_explanation, partition_explanation
from assetflow.ledger.read.reader import Reader
from assetflow.operations import backfill
from assetflow.operations.backfill import BackfillWanted
from assetflow.operations.installation import Installation
from assetflow.operations.needs import Need, needs_of
from assetflow.operations.runs_by_hand import retry
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, ROLLED_UP, deploy, update
from tests.ledger.read.test_ended_runs import ended
from tests.ledger.write.test_kept import CORE, RAW, Place, kept, only
from tests.web.conftest import MakeSite
from tests.web.test_failed_runs import FAILED, Prefect

MINUTE = timedelta(minutes=1)
SHOP, REPORT = Asset("s3://shop/raw", name="raw"), Asset("s3://shop/report", name="report")
DOWN = "No evaluator is running"


def run(flow: UUID, minute: float, outcome: str = "failed", key: str | None = None, **others: object) -> EndedRun:
    moment = NOON + minute * MINUTE
    return replace(ended(flow, 0, outcome, key), began=moment - MINUTE, ended=moment, state_at=moment, **others)  # type: ignore[arg-type]


def bad_day(ledger: Ledger) -> None:
    """Let fifteen runs fail, in seven ways."""
    producer = deploy(ledger, "orders-producer/shop", None, produces=(ORDERS,)).deployment_id
    forecast = deploy(ledger, "forecast/shop", ORDERS, produces=(REPORT,)).deployment_id
    deploy(ledger, "board/shop", REPORT)
    days = deploy(ledger, "visits/shop", ROLLED_UP).deployment_id
    fraud = deploy(ledger, "fraud-check/shop", CUSTOMERS).deployment_id
    by_time = deploy(ledger, "nightly/shop", "0 2 * * *").deployment_id
    loader = deploy(ledger, "loader/shop", None, produces=(SHOP,)).deployment_id
    runs = [
        run(producer, 1, "crashed", error="no memory"),
        *(run(forecast, 2 + minute, error=f"n/a in line {minute}") for minute in range(8)),
        run(days, 11, key="2026-01-01", error="no such file"),
        run(days, 12, "completed", "2026-01-02"),
        run(fraud, 13, error="503"),
        run(fraud, 14, "completed"),
        run(by_time, 15, started_by="time", error="time out"),
        run(loader, 16, "crashed", error="killed"),
        run(loader, 17, started_by="hand", error="again"),
        run(loader, 18, "cancelled"),
        run(fraud, 19, state="TimedOut", error="took too long"),
    ]
    ledger.writer.ended_runs.add(runs, NOON)
    update(ledger, SHOP, 20)


def needs(reader: Reader) -> list[Need]:
    return needs_of(reader, NOON + timedelta(hours=1), {})


@pytest.mark.rule("4.9")
def test_all_are_listed_and_those_that_nothing_made_good_need_a_person(make_site: MakeSite, ledger: Ledger) -> None:
    bad_day(ledger)
    site = make_site(now=lambda: NOON + timedelta(hours=1))
    page = site.page("/runs?failed=true&day=today")
    assert len(page.rows) == 1 + 15
    assert len(site.page("/runs?day=today").rows) == 1 + 18
    assert len(site.page("/runs?failed=true&flow=forecast&day=2026-01-01").rows) == 1 + 8
    assert len(site.page("/runs?key=2026-01-01").rows) == 1 + 1
    assert "No such runs" in site.page("/runs?day=2025-12-31").text
    assert "made good fraud-check/shop" in page.text
    overview = site.page("/").text
    assert "Needs you 6" in overview
    for words in (
        "crashed orders-producer/shop no memory; 2 flows further down",
        "failed forecast/shop 8 times since 2026-01-01 12:02:00 UTC, last: n/a in line 7; 1 flow further down",
        "failed visits/shop 2026-01-01 no such file",
        "failed nightly/shop time out",
        "failed fraud-check/shop took too long",
    ):
        assert words in overview
    assert "loader/shop" not in overview.partition("Waiting longest")[0]
    assert DOWN in overview
    found = [(each.kind, each.what, each.below) for each in needs(ledger.reader)]
    assert found == [
        ("crashed", "orders-producer/shop", 2),
        ("failed", "forecast/shop", 1),
        ("failed", "fraud-check/shop", 0),
        ("failed", "nightly/shop", 0),
        ("failed", "visits/shop 2026-01-01", 0),
    ]


@pytest.mark.rule("4.9")
def test_an_explanation_names_what_failed_and_a_retry_finds_runs_by_time(ledger: Ledger) -> None:
    bad_day(ledger)
    reader, by_time = ledger.reader, ledger.reader.consumers.named("nightly/shop")
    assert by_time is not None
    (failing,) = consumer_explanation(reader, by_time, NOON).failing
    assert failing.describe() == "nightly/shop failed: time out"
    prefect = Prefect()
    prefect.runs = [FAILED | {"id": str(failing.last.flow_run_id)}]
    done = asyncio.run(retry(Installation(ledger, prefect.connect), by_time))
    assert done.flow_runs == [failing.last.flow_run_id]
    days = reader.consumers.named("visits/shop")
    assert days is not None
    assert [len(partition_explanation(reader, days, f"2026-01-0{day}").failing) for day in (1, 2)] == [1, 0]


def test_a_missed_deadline_needs_a_person_until_a_decision_comes(ledger: Ledger) -> None:
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS, deadline=Deadline(30 * MINUTE), produces=(REPORT,))
    deploy(ledger, "board/shop", REPORT)
    update(ledger, ORDERS, 1)
    ledger.writer.clock.run(NOON + timedelta(hours=1), NOON + timedelta(hours=1))
    (found,) = needs(ledger.reader)
    assert (found.kind, found.what, found.below) == ("missed deadline", "report/shop", 1)
    assert (found.words, found.since) == ("still needs customers", NOON + 31 * MINUTE)
    update(ledger, CUSTOMERS, 70)
    assert needs(ledger.reader) == []


def test_a_backfill_needs_a_person_while_it_is_stopped_or_a_target_of_it_has_failed(ledger: Ledger) -> None:
    place = Place(ledger, NOON)
    place.deploy("core/shop", kept([RAW], [CORE], mapper=IdentityMapper(), catchup="none"))
    place.run("core/shop", only(place.update(RAW, "mon")), CORE)
    wanted = BackfillWanted(CORE.uri, keys=("mon", "tue"))
    at = Installation(ledger, now=place.later)
    backfill.begin(at, wanted, backfill.plan(ledger.reader, wanted), concurrency=1, by="anna", why="a bug")
    assert needs(ledger.reader) == []
    backfill.stop(at, 1)
    (stopped,) = needs(ledger.reader)
    assert (stopped.kind, stopped.what, stopped.page) == ("backfill stopped", "Backfill 1", "/backfills/1")
    backfill.resume(at, 1)
    for outcome in ("failed", "completed"):
        (made,) = (each for each, _ in ledger.reader.decisions.waiting())
        end = place.later()
        ledger.writer.decisions.ended(outcome.capitalize(), end, decision_id=made.id, outcome=outcome)
        of = run(made.deployment_id, 0, outcome, made.target_key, error="no such file")
        ledger.writer.ended_runs.add([replace(of, ended=end, state_at=end)], NOON)
    failed, key = needs(ledger.reader)
    assert (failed.kind, failed.words) == ("backfill failed", "1 target of 2 failed: core/shop mon")
    assert (key.kind, key.what) == ("failed", "core/shop mon")
    end = place.later()
    good = run(made.deployment_id, 0, "completed", "mon")
    ledger.writer.ended_runs.add([replace(good, ended=end, state_at=end)], NOON)
    assert needs(ledger.reader) == []
