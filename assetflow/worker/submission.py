"""The requests with which a worker submits a flow run: each is sent once, and what decides nothing holds no run up."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from uuid import UUID

from prefect.client.schemas.responses import OrchestrationResult, SetStateStatus, StateAcceptDetails
from prefect.logging import get_logger

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from prefect.client.orchestration import PrefectClient
    from prefect.client.schemas.objects import Flow, State
    from prefect.client.schemas.responses import DeploymentResponse
    from prefect.types import KeyValueLabels

logger = get_logger("worker.assetflow")

SECONDS_TO_KNOW_A_FLOW = 60.0

# Each run is submitted in a context of its own.
_deployment: ContextVar[DeploymentResponse | None] = ContextVar("_deployment", default=None)


def shorten_submissions(client: PrefectClient, tasks: TaskGroup) -> None:
    """Let a worker's client read the deployment of a run once, label the run meanwhile, and leave Submitting out.

    Prefect's worker reads the deployment to see if it exists, and again for its job variables. It reads the flow for
    its name, which never changes, and its tags, which are read again after a minute. Between Pending, which takes the
    run, and Running it proposes a second PENDING state, which holds nothing back.

    Parameters:
        tasks: where the labels are sent.
    """
    read, label, propose = client.read_deployment, client.update_flow_run_labels, client.set_flow_run_state
    read_flow = client.read_flow
    flows: dict[UUID, tuple[float, Flow]] = {}

    async def read_once(deployment_id: UUID | str) -> DeploymentResponse:
        known = _deployment.get()
        if known is None or known.id != UUID(str(deployment_id)):
            known = await read(deployment_id)
            _deployment.set(known)
        return known

    async def read_flow_now_and_then(flow_id: UUID) -> Flow:
        until, flow = flows.get(flow_id, (0.0, None))
        if flow is None or until < time.monotonic():
            flow = await read_flow(flow_id)
            flows[flow_id] = time.monotonic() + SECONDS_TO_KNOW_A_FLOW, flow
        return flow

    async def label_meanwhile(flow_run_id: UUID, labels: KeyValueLabels) -> None:
        tasks.start_soon(_send_labels, label, flow_run_id, labels)

    async def propose_what_counts(
        flow_run_id: UUID | str, state: State[Any], force: bool = False
    ) -> OrchestrationResult[Any]:
        if state.name == "Submitting" and not force:
            return OrchestrationResult(status=SetStateStatus.ACCEPT, state=state, details=StateAcceptDetails())
        return await propose(flow_run_id, state, force)

    client.read_deployment = read_once
    client.read_flow = read_flow_now_and_then
    client.update_flow_run_labels = label_meanwhile
    client.set_flow_run_state = propose_what_counts


async def _send_labels(label: Any, flow_run_id: UUID, labels: KeyValueLabels) -> None:
    try:
        await label(flow_run_id, labels)
    # The worker lives on without them: Prefect may not know the run any more, or the worker has closed its connections.
    except Exception as error:
        logger.debug("flow run %s has no labels of its worker: %s", flow_run_id, error)
