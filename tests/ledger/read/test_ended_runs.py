"""Which runs have ended, and which failures nothing has made good. Contract 4.8, 4.9."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from assetflow.core.rules.ended_runs import EndedRun, run_name
from assetflow.core.values.events import Origin, SourceFlowRun
from assetflow.core.values.keeping import Cause
from assetflow.ledger import Ledger
from tests.ledger.making import NOW, A, B, deploy, deploy_maker, event, recording


def at(minute: float) -> datetime:
    return NOW + timedelta(minutes=minute)


def ended(deployment: UUID, minute: float, outcome: Any = "failed", key: str | None = None, **others: Any) -> EndedRun:
    state_at = at(minute)
    of = (0, uuid4(), "brave-fox", deployment, "", key, outcome.capitalize(), outcome, "hand", None)
    return replace(EndedRun(*of, NOW, NOW, state_at, "it broke", False, uuid4(), state_at), **others)


def failing(ledger: Ledger) -> list[tuple[str, str | None, int]]:
    return [(each.last.flow, each.last.target_key, each.times) for each in ledger.reader.ended_runs.failing()]


def updated(ledger: Ledger, minute: float, *assets: Any, **fields: Any) -> None:
    ledger.writer.events.record([recording(*(event(each, occurred=at(minute), **fields) for each in assets))], NOW)


def test_what_is_said_of_a_run() -> None:
    run = ended(uuid4(), 17, "crashed", "mon", flow="orders-producer/shop")
    assert run.as_maker() == "orders-producer/shop crashed for mon at 2026-01-01 12:17:00 UTC: it broke"
    assert replace(run, target_key=None, error=None).as_maker().endswith("/shop crashed at 2026-01-01 12:17:00 UTC")
    causes = (Cause("data", "s3://lake/raw"), Cause("missing", "s3://lake/core"), Cause("code"))
    assert run_name(UUID(int=0), "mon", (), causes) == "mon-000000 · raw changed and 2 more"
    assert run_name(UUID(int=0), None, ()) == "refresh-000000"


@pytest.mark.rule("4.9")
def test_a_completed_run_of_the_same_key_makes_good(ledger: Ledger) -> None:
    flow = deploy(ledger, A, "report/daily").deployment_id
    runs = [ended(flow, 1), ended(flow, 2), ended(flow, 3, key="mon"), ended(flow, 4, "completed", "tue")]
    assert ledger.writer.ended_runs.add(runs, NOW) == 4
    assert failing(ledger) == [("report/daily", "mon", 1), ("report/daily", None, 2)]
    ledger.writer.ended_runs.add([ended(flow, 5, "completed"), ended(flow, 2.5, "completed", "mon")], NOW)
    assert failing(ledger) == [("report/daily", "mon", 1)]
    ledger.writer.ended_runs.add([ended(flow, 6), ended(flow, 7, "cancelled", "mon")], NOW)
    assert failing(ledger) == [("report/daily", None, 1), ("report/daily", "mon", 1)]


@pytest.mark.rule("4.9")
def test_updates_of_all_that_it_makes_make_a_maker_good(ledger: Ledger) -> None:
    flow = deploy_maker(ledger, None, [A, B], [], "maker/daily").deployment_id
    failed = ended(flow, 1, "crashed")
    ledger.writer.ended_runs.add([failed], NOW)
    of_itself = Origin("task", flow_run=SourceFlowRun(failed.flow_run_id, "brave-fox"))
    updated(ledger, 2, A, B, origin=of_itself)
    updated(ledger, 2, A)
    updated(ledger, 0.5, B)
    assert failing(ledger) == [("maker/daily", None, 1)]
    updated(ledger, 3, B)
    assert failing(ledger) == []


@pytest.mark.rule("4.8")
def test_the_newest_state_of_a_run_counts(ledger: Ledger) -> None:
    flow = deploy(ledger, A, "report/daily").deployment_id
    failed = ended(flow, 1)
    ended_runs = ledger.writer.ended_runs
    ended_runs.add([failed], NOW)
    assert ended_runs.add([failed, replace(failed, state_at=at(0))], NOW) == 0
    ended_runs.go_on({failed.flow_run_id: at(0)})
    assert ledger.reader.ended_runs.get(failed.flow_run_id) is not None
    ended_runs.go_on({failed.flow_run_id: at(2), uuid4(): at(2)})
    assert ledger.reader.ended_runs.get(failed.flow_run_id) is None
    ended_runs.add([failed, replace(failed, state_at=at(3), ended=at(3), outcome="completed")], NOW)
    assert failing(ledger) == []
