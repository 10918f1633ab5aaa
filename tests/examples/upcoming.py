"""Runs of time schedules, which are made ahead of their time, and are not waited for here."""

import asyncio
from typing import Any, cast

from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.sorting import FlowRunSort
from prefect.flow_engine import run_flow
from prefect.states import Pending

from tests.environment.waiting import until


def next_run(deployment: str) -> FlowRun:
    """The next upcoming run of `flow/deployment`, as soon as it is there."""
    with get_client(sync_client=True) as client:
        wanted = DeploymentFilter(id=DeploymentFilterId(any_=[client.read_deployment_by_name(deployment).id]))
        order = FlowRunSort.EXPECTED_START_TIME_ASC
        return until(lambda: client.read_flow_runs(deployment_filter=wanted, sort=order, limit=1))[0]


def execute(flow: Flow[..., Any], run: FlowRun) -> None:
    """Run an asynchronous flow for an upcoming run now, without waiting for its time."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(run.id, Pending(), force=True)
        begun = client.read_flow_run(run.id)
    asyncio.run(cast("Any", run_flow(flow, flow_run=begun)))
