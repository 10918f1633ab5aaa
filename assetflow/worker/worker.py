"""The work pool type `assetflow`: Prefect's process worker, which hears of its runs and forks them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import anyio
import httpx
from prefect.logging import get_logger
from prefect.settings import PREFECT_API_URL
from prefect.workers.process import ProcessJobConfiguration, ProcessVariables, ProcessWorker
from pydantic import Field

from assetflow.errors import PrefectUnreachable
from assetflow.prefect_io.websocket import subscribe
from assetflow.worker import POOL_TYPE
from assetflow.worker.keeper import TemplateKeeper

logger = get_logger("worker.assetflow")

# The pauses before each look for a run that was heard of: Prefect sends its event before it commits.
PAUSES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
SECONDS_TO_LISTEN_AGAIN = 2.0
_DUE = frozenset({"SCHEDULED", "COMPLETED", "FAILED", "CRASHED", "CANCELLED"})


class WarmJobConfiguration(ProcessJobConfiguration):
    """The configuration of a flow run. Without a command of its own, the run is a child of the worker's template."""

    # Of the worker that runs in this process.
    keeper: ClassVar[TemplateKeeper | None] = None

    preload: list[str] = Field(default_factory=list)

    def prepare_for_flow_run(self, *args: Any, **given: Any) -> None:
        if self.command is None and self.keeper is not None:
            self.command = self.keeper.command(self.preload)
        super().prepare_for_flow_run(*args, **given)


class WarmVariables(ProcessVariables):
    """The job variables of a pool or a deployment."""

    preload: list[str] = Field(
        default_factory=list,
        title="Preload",
        description="Modules that are imported once, before the flow runs fork. A change of one counts when the worker "
        "is started anew.",
    )


class WarmWorker(ProcessWorker):
    """Prefect's process worker with two differences: it hears of scheduled runs, and forks them from a template."""

    type = POOL_TYPE
    job_configuration = WarmJobConfiguration
    job_configuration_variables = WarmVariables
    _description = "Execute flow runs as forks of a process that has imported Prefect, so that they start fast."
    _display_name = "assetflow"
    _documentation_url = "https://docs.prefect.io/latest/get-started/quickstart"

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        self._heard = anyio.Event()
        # The resource ids of runs that were heard of and not seen in the pool yet, with the number of looks for each.
        self._due: dict[str, int] = {}
        self._hearing = anyio.CancelScope()

    async def start(
        self, run_once: bool = False, with_healthcheck: bool = False, printer: Callable[..., None] = print
    ) -> None:
        with TemplateKeeper() as keeper:
            WarmJobConfiguration.keeper = keeper
            async with anyio.create_task_group() as tasks:
                if not run_once:
                    tasks.start_soon(self._hear_runs)
                await super().start(run_once, with_healthcheck, printer)
                tasks.cancel_scope.cancel()

    async def teardown(self, *exc_info: Any) -> None:
        # What is heard from now on would be submitted to a worker that has closed its connections.
        self._hearing.cancel()
        await super().teardown(*exc_info)

    async def _hear_runs(self) -> None:
        """Submit runs as soon as they are heard of, until the worker stops."""
        with self._hearing:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._listen)
                tasks.start_soon(self._ask_when_heard)

    async def _listen(self) -> None:
        """Note when a run may be due, as Prefect's event stream says. Without it, the worker asks as usual."""
        while True:
            try:
                async with subscribe(str(PREFECT_API_URL.value()), prefixes=["prefect.flow-run."]) as events:
                    self._heard.set()
                    async for event in events:
                        if self._concerns(event):
                            self._hear(event["resource"])
            except PrefectUnreachable as error:
                logger.debug("the worker does not hear of runs: %s", error)
            await anyio.sleep(SECONDS_TO_LISTEN_AGAIN)

    def _concerns(self, event: Mapping[str, Any]) -> bool:
        """Return True if an event may mean that a run of this pool is due, or that there is room for one."""
        if event["resource"].get("prefect.state-type") not in _DUE:
            return False
        pools = (each for each in event["related"] if each.get("prefect.resource.role") == "work-pool")
        return any(each.get("prefect.resource.name") == self._work_pool_name for each in pools)

    def _hear(self, run: Mapping[str, Any]) -> None:
        if run["prefect.state-type"] == "SCHEDULED":
            self._due[run["prefect.resource.id"]] = 0
        self._heard.set()

    async def _ask_when_heard(self) -> None:
        """Ask for runs when something was heard, and again after each of the pauses until the runs are there."""
        while True:
            waits = PAUSES[min(self._due.values())] if self._due else math.inf
            with anyio.move_on_after(waits):
                await self._heard.wait()
            self._heard = anyio.Event()
            found = await self._ask()
            looked = {run: looks + 1 for run, looks in self._due.items() if run not in found}
            self._due = {run: looks for run, looks in looked.items() if looks < len(PAUSES)}

    async def _ask(self) -> set[str]:
        """Submit the runs that are due, and return their resource ids."""
        if not self.is_setup:
            return set()
        # The loop that asks at intervals reports the error, if it stays.
        try:
            return {f"prefect.flow-run.{run.id}" for run in await self.get_and_submit_flow_runs()}
        except httpx.HTTPError as error:
            logger.debug("the worker cannot ask for runs: %s", error)
            return set()
