"""The worker sends each request of a submission once, and no run waits for one that decides nothing."""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import anyio
import anyio.lowlevel
import httpx
import pytest
from prefect.client.schemas.responses import SetStateStatus
from prefect.states import Pending, Running

from assetflow.worker import taken_runs
from assetflow.worker.taken_runs import shorten_submissions


class Server:
    """A client that notes what it sends."""

    def __init__(self, error: Exception | None = None) -> None:
        self.sent: list[object] = []
        self.error = error

    async def read_deployment(self, deployment_id: UUID | str) -> Any:
        self.sent.append(("read", str(deployment_id)))
        return SimpleNamespace(id=UUID(str(deployment_id)))

    async def read_flow(self, flow_id: UUID) -> Any:
        self.sent.append(("flow", flow_id))
        return SimpleNamespace(id=flow_id)

    async def update_flow_run_labels(self, _run: UUID, labels: dict[str, str]) -> None:
        if self.error is not None:
            raise self.error
        await anyio.lowlevel.checkpoint()
        self.sent.append(("label", labels))

    async def set_flow_run_state(self, _run: UUID, state: Any, force: bool = False) -> Any:
        self.sent.append((state.name, force))
        return None


async def test_a_deployment_is_read_once_for_each_run() -> None:
    server, one, other = Server(), uuid4(), uuid4()

    async def submit(*deployments: UUID) -> None:
        for each in deployments:
            assert (await client.read_deployment(each)).id == each
            # Prefect starts the run in a task below.
            await asyncio.create_task(client.read_deployment(each))

    async with anyio.create_task_group() as tasks:
        client: Any = server
        shorten_submissions(client, tasks)
        await asyncio.gather(*(asyncio.create_task(submit(*each)) for each in ((one,), (one,), (one, other))))
    assert sorted(server.sent, key=str) == sorted([("read", str(each)) for each in (one, one, one, other)], key=str)


async def test_a_flow_is_read_again_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    server, flow, other, now = Server(), uuid4(), uuid4(), 1_000.0
    monkeypatch.setattr(taken_runs, "time", SimpleNamespace(monotonic=lambda: now))
    async with anyio.create_task_group() as tasks:
        client: Any = server
        shorten_submissions(client, tasks)
        for seconds, read in ((0, flow), (50, flow), (0, other), (11, flow)):
            now += seconds
            assert (await client.read_flow(read)).id == read
    assert server.sent == [("flow", flow), ("flow", other), ("flow", flow)]


async def test_a_run_does_not_wait_for_its_labels() -> None:
    server = Server()
    async with anyio.create_task_group() as tasks:
        client: Any = server
        shorten_submissions(client, tasks)
        await client.update_flow_run_labels(uuid4(), {"a": "b"})
        assert server.sent == []
    assert server.sent == [("label", {"a": "b"})]


@pytest.mark.parametrize("error", [httpx.ConnectError("gone"), RuntimeError("the client has been closed")])
async def test_a_worker_that_cannot_label_a_run_goes_on(error: Exception) -> None:
    async with anyio.create_task_group() as tasks:
        client: Any = Server(error)
        shorten_submissions(client, tasks)
        await client.update_flow_run_labels(uuid4(), {})


@pytest.mark.parametrize(
    ("state", "force", "sent"),
    [
        (Pending(name="Submitting"), False, []),
        (Pending(name="Submitting"), True, [("Submitting", True)]),
        (Pending(), False, [("Pending", False)]),
        (Running(), False, [("Running", False)]),
    ],
)
async def test_submitting_is_left_out(state: Any, force: bool, sent: list[object]) -> None:
    async with anyio.create_task_group() as tasks:
        server: Any = Server()
        shorten_submissions(server, tasks)
        answer = await server.set_flow_run_state(uuid4(), state, force)
    assert server.sent == sent
    assert sent or (answer.status is SetStateStatus.ACCEPT and answer.state == state)
