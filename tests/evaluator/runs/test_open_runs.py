"""The ends of all open runs are asked for, however many there are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID, uuid4

from assetflow.core.rules.ended_runs import RunEnd
from assetflow.evaluator.health import Health
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.runs.watch import ASKED_AT_ONCE, RunWatch
from tests.environment.tasks import cancel
from tests.environment.waiting import until_async
from tests.evaluator.fakes import FakeOpenRuns, FakeRuns
from tests.ledger.making import NOW, A, deploy, update


async def nothing() -> None: ...


async def test_the_end_of_the_youngest_of_many_runs_is_heard(tmp_path: Path) -> None:
    """Prefect did not send it, and more than a thousand older runs go on."""
    prefect = FakeRuns()
    async with LedgerThread(tmp_path / "ledger.db", now=lambda: NOW) as thread:
        deploy(thread.ledger, A)
        writer = thread.ledger.writer
        made = writer.events.record([update(A) for _ in range(1_000 + ASKED_AT_ONCE)], NOW)
        runs: list[UUID] = []
        for _, (decision,) in made:
            runs.append(uuid4())
            writer.decisions.launched(decision.id, runs[-1], NOW)
        prefect.over = {run: RunEnd("Completed", "completed") for run in runs[-10:]}
        watch = RunWatch(thread, prefect, FakeOpenRuns(), Health(), lambda: None, nothing, lambda: NOW, ask_every=0.001)
        loop = asyncio.create_task(watch.run())
        await until_async(lambda: len(thread.ledger.reader.decisions.open_runs(2_000)) == len(runs) - 10)
        await cancel(loop)
