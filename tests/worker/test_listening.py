"""The warm worker asks for the runs that it heard of until they are there."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from assetflow.worker.worker import PAUSES, WarmWorker
from tests.environment.waiting import until_async

POOL = {"prefect.resource.role": "work-pool", "prefect.resource.name": "pool"}


class Shown:
    """What a pool shows at each look, the last for ever."""

    def __init__(self, *looks: Sequence[str]) -> None:
        self.looks = looks
        self.number = 0

    async def look(self) -> list[Any]:
        shown = self.looks[min(self.number, len(self.looks) - 1)]
        self.number += 1
        return [SimpleNamespace(id=each) for each in shown]


def tell(worker: WarmWorker, run: str, state: str = "SCHEDULED") -> None:
    resource = {"prefect.resource.id": f"prefect.flow-run.{run}", "prefect.state-type": state}
    assert worker._concerns({"resource": resource, "related": [POOL]})
    worker._hear(resource)


@pytest.mark.parametrize(
    ("heard", "looks", "number"),
    [
        # The first one shows again while it is being submitted, and the second one is not committed yet.
        (("a", "b"), [["a"], ["a"], ["a"], ["a", "b"], []], 4),
        (("a",), [["a"], []], 1),
        # Another worker took it.
        (("a",), [[]], len(PAUSES)),
    ],
)
async def test_it_looks_until_each_run_was_there(
    monkeypatch: pytest.MonkeyPatch, heard: Sequence[str], looks: Sequence[Sequence[str]], number: int
) -> None:
    pool = Shown(*looks)
    worker = WarmWorker(work_pool_name="pool")
    worker.is_setup = True
    monkeypatch.setattr(worker, "get_and_submit_flow_runs", pool.look)
    for run in heard:
        tell(worker, run)
    asks = asyncio.create_task(worker._ask_when_heard())
    await until_async(lambda: pool.number and not worker._due)
    assert pool.number == number
    tell(worker, "a", "COMPLETED")
    await until_async(lambda: pool.number == number + 1)
    assert not worker._due
    asks.cancel()
