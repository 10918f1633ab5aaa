"""The final states of all runs are read from Prefect from where the last look ended. Contract 4.8."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from assetflow.core.rules.ended_runs import EndedRun, RunChange
from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_schedules import Eager
from assetflow.evaluator.health import Health
from assetflow.evaluator.runs.launch import LONG_OVERLAP, FinalStates
from assetflow.prefect_io.own_events import run_failed
from tests.evaluator.fakes import FakeOpenRuns
from tests.evaluator.ledgers import START, LedgerHere
from tests.ledger.making import deploy_maker
from tests.ledger.read.test_ended_runs import ended

SOURCE, TABLE = Asset("s3://lake/source"), Asset("s3://lake/table")


class Prefect(FakeOpenRuns):
    """Prefect's flow runs that have ended."""

    def __init__(self, *ended: EndedRun) -> None:
        super().__init__()
        self.over = list(ended)
        self.since: list[datetime] = []

    async def ended(self, since: datetime, anew: Collection[UUID] = ()) -> Sequence[EndedRun]:
        self.since.append(since)
        return [each for each in self.over if self.first_end(each) > since or each.flow_run_id in anew]

    def first_end(self, run: EndedRun) -> datetime:
        """Return when a run ended first: for Prefect, the time of its end stays."""
        return min(each.ended for each in self.over if each.flow_run_id == run.flow_run_id)

    def set_by_hand(self, run: EndedRun, second: float) -> EndedRun:
        """Put `Completed` in the place of a run's final state."""
        moment = START + timedelta(seconds=second)
        self.over.append(replace(run, ended=moment, state_at=moment, state="Completed", outcome="completed", error=""))
        return self.over[-1]


def run(deployment: UUID, second: float, **others: object) -> EndedRun:
    moment = START + timedelta(seconds=second)
    return replace(ended(deployment, 0), ended=moment, state_at=moment, **others)  # type: ignore[arg-type]


async def test_a_look_goes_on_where_the_last_one_ended_also_after_a_downtime(ledger: LedgerHere) -> None:
    flow = ledger.deploy("report/daily", Asset("a")).deployment_id
    prefect, told = Prefect(run(flow, -5), run(flow, 1), run(uuid4(), 2)), list[int]()
    states = FinalStates(ledger, prefect, Health(), START, lambda: told.append(1))
    await states.look()
    await states.look()
    assert prefect.since == [START, START]
    prefect.over.append(run(flow, 7200, outcome="completed"))
    await FinalStates(ledger, prefect, Health(), START, lambda: told.append(2)).look()
    assert prefect.since[-1] == START
    await states.look()
    assert prefect.since[-1] == START + timedelta(seconds=7200) - LONG_OVERLAP
    assert [each.outcome for each in ledger.reader.ended_runs.find()] == ["completed", "failed"]
    assert told == [1, 2]


async def test_4_8_a_final_state_set_in_place_of_another_counts_also_after_a_downtime(ledger: LedgerHere) -> None:
    flow = ledger.deploy("report/daily", Asset("a")).deployment_id
    old, new = run(flow, 1), run(flow, 7200)
    prefect = Prefect(old)
    states = FinalStates(ledger, prefect, Health(), START, lambda: None)
    await states.look()
    prefect.over.append(new)
    await states.look(timedelta())
    assert [each.outcome for each in ledger.reader.ended_runs.find()] == ["failed", "failed"]
    prefect.set_by_hand(old, 7300)
    states.wake(old.flow_run_id)
    await states.look(timedelta())
    assert [each.outcome for each in ledger.reader.ended_runs.find()] == ["completed", "failed"]
    prefect.anew = [RunChange(new.flow_run_id, flow, anew=True)]
    prefect.over.append(run(flow, 20_000, outcome="completed"))
    await states.look(timedelta())
    prefect.set_by_hand(new, 30_000)
    await FinalStates(ledger, prefect, Health(), START, lambda: None).look()
    assert {each.outcome for each in ledger.reader.ended_runs.find()} == {"completed"}
    assert ledger.reader.ended_runs.failing() == []


@pytest.mark.rule("4.8")
def test_an_event_says_what_waits_below(ledger: LedgerHere) -> None:
    maker = deploy_maker(ledger.ledger, None, [TABLE], [SOURCE], "table/daily", at=START)
    deploy_maker(ledger.ledger, Eager(), [Asset("s3://lake/board")], [TABLE], "board/daily", at=START)
    writer = ledger.writer.ended_runs
    writer.add([run(maker.deployment_id, 1, error="no such file")], START)
    (told,) = writer.to_tell(10)
    event: Any
    (event,) = run_failed(told)
    assert event["payload"]["below"] == ["board/daily"]
    assert event["payload"]["words"] == "table/daily failed: no such file; 1 flow further down"
    writer.posted([told.number], START)
    assert (again := writer.to_tell(10)[0]).posted == START
    assert again.id == told.id
    writer.stored([told.number], START)
    assert writer.to_tell(10) == []
