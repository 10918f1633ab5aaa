"""Process, Docker and Kubernetes pools: what they start gets a command and an environment, and needs nothing else.

Docker and Kubernetes are not there in tests. Their workers share with all others how the command and the environment of
a flow run are made; a bare process with these stands for the container.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.workers.base import BaseJobConfiguration, BaseVariables, BaseWorker, BaseWorkerResult
from prefect.workers.process import ProcessJobConfiguration, ProcessWorker

from assetflow import Asset
from tests.integration.recorded import fresh, recorded

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(400), pytest.mark.usefixtures("prefect_here")]

FLOW = """
import os
import assetflow
from assetflow import Asset

@assetflow.task(outlets=[Asset("{uri}", name="{name}")])
def update(outlet_events=None):
    outlet_events[Asset("{uri}", name="{name}")].extra = {{"given": os.environ.get("GIVEN")}}

@assetflow.flow
def report():
    update()
"""


class ContainerWorker(BaseWorker[BaseJobConfiguration, BaseVariables, BaseWorkerResult]):
    """A worker that adds nothing to what all workers have: the command and the environment of a flow run."""

    type = f"container-{uuid4().hex[:8]}"
    job_configuration = BaseJobConfiguration

    async def run(
        self, flow_run: FlowRun, configuration: BaseJobConfiguration, task_status: Any = None
    ) -> BaseWorkerResult:
        raise NotImplementedError


async def deploy(client: PrefectClient, folder: Path, asset: Asset) -> FlowRun:
    (folder / "flows.py").write_text(FLOW.format(uri=asset.uri, name=asset.name))
    step = {"prefect.deployments.steps.set_working_directory": {"directory": str(folder)}}
    flow = await client.create_flow_from_name(f"report-{uuid4().hex[:8]}")
    deployment = await client.create_deployment(flow, "report", entrypoint="flows.py:report", pull_steps=[step])
    return await client.create_flow_run_from_deployment(deployment)


@pytest.mark.parametrize(
    ("kind", "template"),
    [
        (BaseJobConfiguration, ContainerWorker.get_default_base_job_template()),
        (ProcessJobConfiguration, ProcessWorker.get_default_base_job_template()),
    ],
    ids=["container", "process"],
)
async def test_a_flow_run_needs_the_command_and_the_environment_of_its_pool(
    tmp_path: Path, kind: type[BaseJobConfiguration], template: dict[str, Any]
) -> None:
    asset = fresh()
    async with get_client() as client:
        run = await deploy(client, tmp_path, asset)
        configuration = await kind.from_template_and_values(template, {"env": {"GIVEN": "by the job"}}, client=client)
        configuration.prepare_for_flow_run(run)
        # An image has these; everything else of this process's environment is away.
        image = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
        image["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), image["PATH"]))
        # The configuration of a process pool repeats the environment of its worker.
        made = {name: value for name, value in configuration.env.items() if os.environ.get(name) != value}
        given = {name: value for name, value in made.items() if value is not None}
        done = subprocess.run(  # noqa: ASYNC221
            shlex.split(str(configuration.command)), env=image | given, cwd=tmp_path, capture_output=True, text=True
        )
        state = (await client.read_flow_run(run.id)).state
    assert state is not None
    assert state.is_completed(), done.stdout + done.stderr
    assert [each.extra for each in recorded(asset)] == [{"given": "by the job"}]
