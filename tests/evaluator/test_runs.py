"""The ends of runs reach the ledger, heard or asked for."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

from assetflow.core.assets import Asset
from assetflow.evaluator import runs as runs_module
from assetflow.evaluator.health import Health
from assetflow.evaluator.runs import RunWatch
from tests.evaluator.fakes import FakeLedger, FakeRuns, recording, until


async def launched(ledger: FakeLedger, number: int) -> list[UUID]:
    ledger.consumer("report/daily", Asset("a"))
    await ledger.record([recording("a") for _ in range(number)])
    runs = [uuid4() for _ in range(number)]
    for decision, run in zip(ledger.book.decisions, runs, strict=True):
        await ledger.launched(decision.id, run)
    return runs


def state_event(run: UUID, kind: str, name: str) -> dict[str, Any]:
    labels = {"prefect.state-type": kind, "prefect.state-name": name}
    return {
        "event": f"prefect.flow-run.{name}",
        "resource": {"prefect.resource.id": f"prefect.flow-run.{run}", **labels},
    }


async def test_the_end_of_a_run_is_heard_once() -> None:
    ledger, ended = FakeLedger(), []
    (run,) = await launched(ledger, 1)
    watch = RunWatch(ledger, FakeRuns(), Health(), lambda: ended.append(1))
    await watch.hear(state_event(run, "RUNNING", "Running"))
    await watch.hear(state_event(uuid4(), "COMPLETED", "Completed"))
    assert ledger.states == {}
    await watch.hear(state_event(run, "COMPLETED", "Skipped"))
    await watch.hear(state_event(run, "COMPLETED", "Skipped"))
    assert ledger.states == {run: "Skipped"}
    assert ended == [1]


async def test_ends_that_nobody_heard_are_asked_for_a_part_at_a_time(monkeypatch: Any) -> None:
    monkeypatch.setattr(runs_module, "ASKED_AT_ONCE", 2)
    ledger, prefect = FakeLedger(), FakeRuns()
    runs = await launched(ledger, 5)
    prefect.over = {runs[4]: "Crashed", runs[2]: "Deleted"}
    loop = asyncio.create_task(RunWatch(ledger, prefect, Health(), lambda: None, ask_every=0.005).run())
    await until(lambda: len(ledger.states) == 2)
    assert ledger.states == prefect.over
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)
