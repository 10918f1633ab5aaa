"""The worker sends each request of a submission once, and no run waits for one that decides nothing."""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import anyio
import anyio.lowlevel
import pytest
from prefect.client.schemas.responses import SetStateStatus
from prefect.states import Pending, Running

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
