"""Trees of causes: what an update, a run or an asset has led to. Contract 7.4."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from assetflow.core.explain.trace import Trace, drawn, line_words
from assetflow.core.rules.ended_runs import EndedRun
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceFlowRun
from assetflow.core.values.timing import Deadline
from assetflow.ledger import Ledger
from assetflow.ledger.records import DecisionRecord
from assetflow.operations.graph import newest_traces, trace_of
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, event_id, update
from tests.ledger.write.test_kept import BOARD, CORE, RAW, Place, kept, only

REPORT = Asset("s3://lake/report", name="report")
NOW = NOON + timedelta(hours=1)


def told(trace: Trace) -> list[str]:
    return [f"{branches}{line_words(line)}" for branches, line in drawn(trace)]


def tree(ledger: Ledger, what: object, now: object = NOW) -> list[str]:
    return told(trace_of(ledger.reader, str(what), now))  # pyright: ignore[reportArgumentType]


def ran(
    ledger: Ledger, decision: Decision | DecisionRecord, minute: int, *assets: Asset, state: str = "Completed"
) -> UUID:
    """The run of a decision takes so many minutes from noon on, and updates assets in its last."""
    run, end = uuid4(), NOON + timedelta(minutes=minute)
    ledger.writer.decisions.launched(decision.id, run, decision.made)
    origin = Origin("task", flow_run=SourceFlowRun(run, "calm-fox", flow_name="report", deployment_name="nightly"))
    events = tuple(AssetEvent(uuid4(), each, end, origin, metrics={"rows": 3}) for each in assets)
    if events:
        ledger.writer.events.record([Recording(uuid4(), events)], end)
    ledger.writer.decisions.ended(state, end, decision_id=decision.id)
    return run


def ended(run: UUID, deployment: UUID, minute: int, how: str, error: str = "", **more: Any) -> EndedRun:
    """A run that began at noon and ended so many minutes later."""
    end, outcome = NOON + timedelta(minutes=minute), "failed" if error else "completed"
    of = (0, run, "calm-fox", deployment, "", None, outcome.title(), outcome, how, None)
    return replace(EndedRun(*of, NOON, NOON, end, error, state_at=end), **more)  # pyright: ignore[reportArgumentType]


@pytest.mark.rule("7.4")
def test_a_run_hangs_below_the_newest_update_that_led_to_it_and_names_the_others(ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS, produces=(REPORT,))
    deploy(ledger, "mail/all", REPORT)
    update(ledger, ORDERS, 1)
    (decision,) = update(ledger, CUSTOMERS, 2)
    run = ran(ledger, decision, 3, REPORT)
    below = [
        "└─ ✓ report/nightly  60 s  with orders 12:01:00",
        "   └─ ● report  3 rows",
        "      └─ ◌ mail/all  waiting",
    ]
    assert tree(ledger, "customers") == ["● customers  by the API", *below]
    also = [below[0].replace("orders 12:01:00", "customers 12:02:00"), *below[1:]]
    assert tree(ledger, event_id(1)) == tree(ledger, 1) == ["● orders  by the API", *also]
    for name in (decision.id, run, str(run)[:8]):
        shown = ["✓ report/nightly  60 s", "● report  3 rows", "◌ mail/all  waiting"]
        assert [line.strip("└─ ") for line in tree(ledger, name)] == shown
    found = trace_of(ledger.reader, "customers", NOW)
    assert (found.runs, found.failed, found.until) == (2, 0, None)
    assert found.words == "2 runs, goes on"
    assert found.at == NOON + timedelta(minutes=2)


@pytest.mark.rule("7.4")
def test_a_consumer_that_does_not_run_stands_there_with_the_reason(ledger: Ledger) -> None:
    deploy(ledger, "both/one", ORDERS & CUSTOMERS, deadline=Deadline(timedelta(minutes=20)))
    for name in ("first/shop", "second/shop"):
        paused = deploy(ledger, name, ORDERS)
        ledger.writer.consumers.switch(paused.id, paused=True, now=NOON)
    update(ledger, ORDERS, 1)
    ledger.writer.clock.run(NOW, NOW)
    assert tree(ledger, "orders") == [
        "● orders  by the API",
        "├─ ◌ both/one  waits: still needs customers, for 59 min; it missed its deadline",
        "└─ ◌ first/shop, second/shop  paused: dropped the update",
    ]
    assert trace_of(ledger.reader, "orders", NOW).words == "no run, 3 did not run"


@pytest.mark.rule("7.4")
def test_runs_of_eager_flows_hang_below_what_they_read(ledger: Ledger) -> None:
    place = Place(ledger)
    place.deploy("core/one", kept([RAW], [CORE], code="1"))
    place.deploy("board/one", kept([CORE], [BOARD]))
    first = only(place.update(RAW))
    board = only(place.run("core/one", first, CORE, code="1"))
    place.run("board/one", board, BOARD)
    second = only(place.update(RAW))
    place.end(second, "failed")
    again = only(place.deploy("core/one", kept([RAW], [CORE], code="2")))
    place.run("core/one", again, CORE, code="2")
    place.deploy("core/one", kept([RAW], [CORE], code="3"))
    lines = tree(ledger, 1, place.now)
    shown = ["● s3://lake/raw", "✓ core/one", "● s3://lake/core", "✓ board/one"]
    assert [line.strip("└─ ").split("  ")[0] for line in lines] == shown
    shown = ["✕ core/one", "✓ core/one"]
    assert [line.strip("├└─ ").split("  ")[0] for line in tree(ledger, "s3://lake/raw", place.now)[1:3]] == shown
    (code,) = [found for found in newest_traces(ledger.reader, 10, place.now) if not found.lines[0].uri]
    assert code.lines[0].name == "core/one", "new code led to it"


@pytest.mark.rule("7.4")
def test_a_tree_that_is_too_large_says_so(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(ledger, "report/nightly", ORDERS, produces=(REPORT,))
    (decision,) = update(ledger, ORDERS, 1)
    ran(ledger, decision, 2, REPORT, CUSTOMERS)
    monkeypatch.setattr("assetflow.ledger.read.tracing.MOST", 2)
    assert trace_of(ledger.reader, "1", NOW).is_cut
    monkeypatch.setattr("assetflow.ledger.read.tracing.MOST", 100)
    monkeypatch.setattr("assetflow.ledger.read.tracing.LEVELS", 1)
    assert trace_of(ledger.reader, "1", NOW).is_cut
    assert trace_of(ledger.reader, "1", NOW).cut_to(1).left_out == 1


def test_a_run_shows_the_first_line_of_its_error_and_a_maker_how_it_was_started(ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS)
    maker = deploy(ledger, "load/shop", CUSTOMERS, produces=(ORDERS,))
    by_hand = SourceFlowRun(UUID(int=5), "calm-fox", flow_name="load", deployment_name="shop")
    (decision,) = update(ledger, ORDERS, 1, origin=Origin("task", flow_run=by_hand))
    run = ran(ledger, decision, 3, state="Failed")
    good = ended(UUID(int=5), maker.deployment_id, 1, "hand")
    bad = ended(run, decision.deployment_id, 3, "decision", "503\nat line 3", decision=decision.id)
    ledger.writer.ended_runs.add([good, bad], NOON)
    shown = ["✓ load/shop  by hand  60 s", "└─ ● orders", '   └─ ✕ report/nightly  failed  3 min  "503"']
    assert tree(ledger, UUID(int=5)) == shown
