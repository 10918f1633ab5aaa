"""Where an update comes from, as the flow run around the code tells it."""

from __future__ import annotations

from contextlib import ExitStack
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext

from assetflow.authoring import origin
from assetflow.core.wire.run_context import RunContext, run_context_to_json
from assetflow.prefect_io.rest import TaskApi


@pytest.mark.parametrize("below", [0, 1], ids=["in the run", "in a flow that it calls"])
def test_a_run_that_a_decision_started_knows_the_name_of_its_deployment(
    monkeypatch: pytest.MonkeyPatch, below: int
) -> None:
    monkeypatch.setattr(TaskApi, "connect", lambda **_: pytest.fail("Prefect was asked"))
    context = run_context_to_json(RunContext(uuid4(), "report/nightly"))
    started = FlowRun(flow_id=uuid4(), deployment_id=uuid4(), context=context)
    runs = [started, *(FlowRun(flow_id=uuid4()) for _ in range(below))]
    with ExitStack() as stack:
        for run in runs:
            stack.enter_context(FlowRunContext.model_construct(flow_run=run, flow=None, parameters={}))
        found = origin.current_origin("task").flow_run
    assert found is not None
    assert (found.id, found.deployment_id) == (runs[-1].id, started.deployment_id)
    assert found.deployment_name == "nightly"
