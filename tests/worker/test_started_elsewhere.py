"""A run that is an ordinary process is lost with its worker only until it has started; others see to it then."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from prefect.workers.process import ProcessWorker

from assetflow.worker.taken_runs import TakenRuns
from assetflow.worker.worker import WarmJobConfiguration, WarmWorker


async def test_a_note_says_that_a_run_goes_on_elsewhere_when_its_process_has_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run: Any = SimpleNamespace(id=uuid4())
    said: list[bytes] = []
    told: list[int | None] = []

    async def start(_worker: object, _run: object, _configuration: object, status: Any) -> None:
        said.append(note.read_bytes())
        status.started(7)
        said.append(note.read_bytes())

    monkeypatch.setattr(ProcessWorker, "run", start)
    with TakenRuns(tmp_path, "worker") as taken:
        monkeypatch.setattr(WarmJobConfiguration, "taken", taken)
        note = taken.note(run.id)
        status: Any = SimpleNamespace(started=told.append)
        await WarmWorker(work_pool_name="pool").run(run, WarmJobConfiguration(command="my own"), status)
        assert not note.exists()
    assert said == [b"", b"elsewhere"]
    assert told == [7]
