"""The ends of runs are recorded, whether Prefect sends them or is asked for them."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

from assetflow.core.assets import Asset
from assetflow.core.run_ends import DELETED, RunEnd
from assetflow.evaluator.health import Health
from assetflow.evaluator.runs import ends as runs_module
from assetflow.evaluator.runs.ends import RunWatch
from tests.environment.tasks import cancel
from tests.environment.waiting import until_async
from tests.evaluator.fakes import FakeLedger, FakeRuns, recording


async def nothing() -> None: ...


async def launched(ledger: FakeLedger, number: int) -> list[UUID]:
    ledger.consumer("report/daily", Asset("a"))
    await ledger.record([recording("a") for _ in range(number)])
    runs = [uuid4() for _ in range(number)]
    for decision, run in zip(ledger.state.changes.decisions, runs, strict=True):
        await ledger.launched(decision.id, run)
    return runs


async def test_the_end_of_a_run_is_recorded_once() -> None:
    ledger, ended = FakeLedger(), []
    (run,) = await launched(ledger, 1)
    watch = RunWatch(ledger, FakeRuns(), Health(), lambda: ended.append(1), nothing)
    await watch.end(uuid4(), RunEnd("Completed", "completed"))
    assert (ledger.states, ended) == ({}, [])
    await watch.end(run, RunEnd("Skipped", "completed"))
    await watch.end(run, RunEnd("Skipped", "completed"))
    assert ledger.states == {run: "Skipped"}
    assert ended == [1]


async def test_prefect_is_asked_for_the_ends_of_some_runs_at_a_time(monkeypatch: Any) -> None:
    monkeypatch.setattr(runs_module, "ASKED_AT_ONCE", 2)
    ledger, prefect = FakeLedger(), FakeRuns()
    runs = await launched(ledger, 5)
    prefect.over = {runs[4]: RunEnd("Crashed", "crashed"), runs[2]: DELETED}
    loop = asyncio.create_task(RunWatch(ledger, prefect, Health(), lambda: None, nothing, ask_every=0.005).run())
    await until_async(lambda: len(ledger.states) == 2)
    assert ledger.states == {runs[4]: "Crashed", runs[2]: "Deleted"}
    await cancel(loop)


async def test_the_updates_of_a_compared_run_are_recorded_before_its_end() -> None:
    ledger = FakeLedger()
    other, run = await launched(ledger, 2)
    ledger.compared = {run}
    ended_when_read: list[dict[UUID, str]] = []

    async def read_logs() -> None:
        ended_when_read.append(dict(ledger.states))

    watch = RunWatch(ledger, FakeRuns(), Health(), lambda: None, read_logs)
    await watch.end(other, RunEnd("Completed", "completed"))
    assert ended_when_read == []
    await watch.end(run, RunEnd("Completed", "completed"))
    assert ended_when_read == [{other: "Completed"}]
    assert ledger.states[run] == "Completed"
