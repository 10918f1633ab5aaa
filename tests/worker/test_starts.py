"""A worker starts a few runs at a time, however many are due."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from assetflow.worker.starts import Starts
from assetflow.worker.worker import WarmWorker
from tests.worker.test_listening import POOL


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def due(run: UUID, after: timedelta = timedelta()) -> Any:
    return SimpleNamespace(
        flow_run=SimpleNamespace(id=run, next_scheduled_start_time=datetime.now(UTC) + after, name="run")
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def starts(clock: Clock) -> Starts:
    return Starts(at_a_time=2, seconds=5.0, clock=clock)


def chosen(starts: Starts, runs: Sequence[UUID]) -> list[UUID]:
    return [each.flow_run.id for each in starts.choose([due(run) for run in runs])]


def test_a_few_at_a_time_in_their_order(starts: Starts) -> None:
    runs = [uuid4() for _ in range(5)]
    assert chosen(starts, runs) == runs[:2]
    # Prefect shows a run again while it is being submitted.
    assert chosen(starts, runs) == runs[:2]
    assert starts.begun(str(runs[1]))
    assert chosen(starts, [runs[0], *runs[2:]]) == [runs[0], runs[2]]
    assert not starts.begun(str(runs[4]))


def test_nobody_waits_for_a_place_that_is_free(starts: Starts) -> None:
    run = uuid4()
    assert chosen(starts, [run]) == [run]
    assert starts.seconds_to_place() == math.inf
    assert not starts.begun(str(run))


def test_a_run_that_does_not_begin_gives_its_place_up(starts: Starts, clock: Clock) -> None:
    runs = [uuid4() for _ in range(4)]
    chosen(starts, runs)
    clock.now += 4
    assert starts.seconds_to_place() == 1.0
    assert chosen(starts, runs) == runs[:2]
    clock.now += 1
    assert starts.seconds_to_place() == 0.0
    assert chosen(starts, runs[2:]) == runs[2:]
    assert starts.seconds_to_place() == math.inf


def test_a_run_that_waits_for_its_time_takes_no_place(starts: Starts) -> None:
    runs = [uuid4() for _ in range(5)]
    later = [due(run, timedelta(seconds=8)) for run in runs[:3]]
    found = starts.choose([*later, *(due(run) for run in runs[3:])])
    assert [each.flow_run.id for each in found] == runs


async def test_prefect_shows_a_listening_worker_fifty_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest stays for other workers of the pool, and is asked for when a run has begun."""
    worker = WarmWorker(work_pool_name="pool")
    runs = [uuid4() for _ in range(50)]
    client = SimpleNamespace(get_scheduled_flow_runs_for_work_pool=answer([due(run) for run in runs]))
    monkeypatch.setattr(worker, "_client", client)
    submitted: list[UUID] = []
    monkeypatch.setattr(worker, "_submit_scheduled_flow_runs", submit(submitted))
    worker._has_successfully_synced = True
    worker._starts = Starts(at_a_time=3)
    worker._listens = True

    await worker.get_and_submit_flow_runs()
    assert submitted == runs[:3]
    worker._heard = type(worker._heard)()
    resource = {"prefect.resource.id": f"prefect.flow-run.{runs[0]}", "prefect.state-type": "RUNNING"}
    assert worker._concerns({"resource": resource, "related": [POOL]})
    worker._hear(resource)
    assert worker._heard.is_set()

    submitted.clear()
    worker._listens = False
    await worker.get_and_submit_flow_runs()
    assert submitted == runs


def answer(found: list[Any]) -> Any:
    async def ask(**_: object) -> list[Any]:
        return found

    return ask


def submit(submitted: list[UUID]) -> Any:
    async def submit(flow_run_response: list[Any]) -> list[Any]:
        submitted.extend(each.flow_run.id for each in flow_run_response)
        return []

    return submit
