"""The work pool type `assetflow`: Prefect's process worker, which hears of its runs, and forks them from templates."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Self
from uuid import UUID

import anyio
import anyio.abc
import httpx
from prefect.client.schemas.objects import FlowRun
from prefect.logging import get_logger
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, get_current_settings
from prefect.workers.process import (
    ProcessJobConfiguration,
    ProcessVariables,
    ProcessWorker,
    ProcessWorkerResult,
)
from pydantic import Field, PrivateAttr, TypeAdapter, ValidationError

from assetflow.errors import PrefectUnreachable
from assetflow.prefect_io.internals import remember_environment, share_certificates, start_by_command
from assetflow.prefect_io.websocket import subscribe
from assetflow.worker import POOL_TYPE, client, hooks
from assetflow.worker.taken_runs import TakenRuns, note_what_is_taken, see_to_abandoned_runs, shorten_submissions

logger = get_logger("worker.assetflow")

# The pauses before each look for a run that was heard of: Prefect sends its event before it commits.
PAUSES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
SECONDS_TO_LISTEN_AGAIN = 2.0
SECONDS_TO_LOOK_AFTER_RUNS = 10.0
# The worker compares the versions of Prefect and of its server; its runs have the same ones.
_OF_RUNS = {"PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED": "false"}
_DUE = frozenset({"SCHEDULED", "COMPLETED", "FAILED", "CRASHED", "CANCELLED"})


class WarmJobConfiguration(ProcessJobConfiguration):
    """The configuration of a flow run. Without a command of its own, the run is a child of the worker's template."""

    # Of the worker that runs in this process.
    keeper: ClassVar[TemplateKeeper | None] = None
    taken: ClassVar[TakenRuns | None] = None

    preload: list[str] = Field(default_factory=list)

    _is_warm: bool = PrivateAttr(default=False)
    _holds_note: bool = PrivateAttr(default=False)

    @property
    def is_warm(self) -> bool:
        """The run is a child of a template, or takes its place if that cannot fork."""
        return self._is_warm

    @property
    def holds_note(self) -> bool:
        """The process of the run marks and holds its note."""
        return self._holds_note

    def prepare_for_flow_run(self, flow_run: FlowRun, *args: Any, **given: Any) -> None:
        if self.keeper is not None and self.taken is not None:
            note = self.taken.note(flow_run.id)
            if self.command is not None:
                self._hold(note)
            elif not self._installs():
                self._warm(self.keeper, note)
        super().prepare_for_flow_run(flow_run, *args, **given)
        self.env = _OF_RUNS | self.env

    def _hold(self, note: Path) -> None:
        """Let the command of the run hold a note."""
        holding = [sys.executable, "-S", "-E", client.__file__, client.COMMAND, str(note)]
        self.command = f"{shlex.join(holding)} {self.command}"
        self._holds_note = True

    def _warm(self, keeper: TemplateKeeper, note: Path) -> None:
        """Let a template fork the run, where it can, and the run hold a note."""
        command = keeper.command("prefect.engine", self.preload)
        if command is not None:
            self.command = shlex.join([*command, str(note)])
            self._is_warm = self._holds_note = True

    def hooks(self) -> hooks.HookProcess:
        """Return what calls the hooks of the run."""
        command = self.keeper.command(hooks.__name__, self.preload) if self.keeper is not None else None
        return hooks.HookProcess(command or [sys.executable, "-m", hooks.__name__], self.env, self.working_dir)

    def _installs(self) -> bool:
        """Return True if Prefect is to install the packages of the run, and to start it with these."""
        said = self.env.get("PREFECT_RUNNER_AUTO_INSTALL_DEPENDENCIES")
        if said is None:
            return bool(get_current_settings().runner.auto_install_dependencies)
        try:
            return TypeAdapter(bool).validate_python(said)
        except ValidationError:
            return False


class WarmVariables(ProcessVariables):
    """The job variables of a pool or a deployment."""

    preload: list[str] = Field(
        default_factory=list,
        title="Preload",
        description="Modules that are imported once, before the flow runs fork.",
    )


class WarmWorker(ProcessWorker):
    """Prefect's process worker, but it hears of scheduled runs, forks them, and sees to those of workers that died."""

    type = POOL_TYPE
    job_configuration = WarmJobConfiguration
    job_configuration_variables = WarmVariables
    _description = "Execute flow runs as forks of a process that has imported Prefect, so that they start fast."
    _display_name = "assetflow"
    _documentation_url = "https://docs.prefect.io/latest/get-started/quickstart"

    def __init__(self, work_pool_name: str, *args: Any, **given: Any) -> None:
        super().__init__(work_pool_name, *args, **given)
        self._pool = work_pool_name
        self._heard = anyio.Event()
        # The resource ids of runs that were heard of and not seen in the pool yet, with the number of looks for each.
        self._due: dict[str, int] = {}
        self._hearing = anyio.CancelScope()
        self._tasks: anyio.abc.TaskGroup | None = None

    async def start(
        self, run_once: bool = False, with_healthcheck: bool = False, printer: Callable[..., None] = print
    ) -> None:
        share_certificates()
        remember_environment()
        with TemplateKeeper() as keeper, TakenRuns(self._place(), self.name) as taken:
            WarmJobConfiguration.keeper, WarmJobConfiguration.taken = keeper, taken
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                if not run_once:
                    tasks.start_soon(self._hear_runs, taken)
                await super().start(run_once, with_healthcheck, printer)
                tasks.cancel_scope.cancel()

    def _place(self) -> Path:
        """Return the folder of this pool's notes on this machine."""
        pool = sha256(f"{PREFECT_API_URL.value()} {self._pool}".encode()).hexdigest()[:16]
        return PREFECT_HOME.value() / "assetflow-workers" / pool

    async def setup(self) -> None:
        await super().setup()
        if WarmJobConfiguration.taken is not None:
            note_what_is_taken(self.client, WarmJobConfiguration.taken)
        if self._tasks is not None:
            shorten_submissions(self.client, self._tasks)

    async def run(
        self,
        flow_run: FlowRun,
        configuration: ProcessJobConfiguration,
        task_status: anyio.abc.TaskStatus[int] | None = None,
    ) -> ProcessWorkerResult:
        assert isinstance(configuration, WarmJobConfiguration)
        if configuration.working_dir is not None and not configuration.working_dir.is_dir():
            raise NotADirectoryError(f"the working directory {configuration.working_dir} of this flow run is not there")
        status = task_status or anyio.TASK_STATUS_IGNORED
        if not configuration.holds_note:
            status = _OrdinaryStatus(status, flow_run.id)
        with start_by_command(configuration.hooks(), as_engine=configuration.is_warm):
            result = await super().run(flow_run, configuration, status)
        if WarmJobConfiguration.taken is not None:
            WarmJobConfiguration.taken.forget(flow_run.id)
        return result

    async def teardown(self, *exc_info: Any) -> None:
        # What is heard from now on would be submitted to a worker that has closed its connections.
        self._hearing.cancel()
        await super().teardown(*exc_info)

    async def _hear_runs(self, taken: TakenRuns) -> None:
        """Submit runs as soon as they are heard of, and see to those of dead workers, until the worker stops."""
        with self._hearing:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._listen)
                tasks.start_soon(self._ask_when_heard)
                tasks.start_soon(self._see_to_abandoned_runs, taken)

    async def _see_to_abandoned_runs(self, taken: TakenRuns) -> None:
        while True:
            if self.is_setup:
                await see_to_abandoned_runs(taken, self.client)
            await anyio.sleep(SECONDS_TO_LOOK_AFTER_RUNS)

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
        return any(each.get("prefect.resource.name") == self._pool for each in pools)

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


@dataclass(frozen=True)
class _OrdinaryStatus:
    """Notes the process of a run, as soon as it has started, if that process does not hold the run's note itself."""

    status: anyio.abc.TaskStatus[int]
    run: UUID

    def started(self, value: int | None = None) -> None:
        if WarmJobConfiguration.taken is not None and value is not None:
            WarmJobConfiguration.taken.note_process(self.run, value)
        self.status.started(value)  # pyright: ignore[reportArgumentType]


# Elsewhere, libraries of the system do not survive a fork.
CAN_FORK = sys.platform == "linux"
MOST_TEMPLATES = 4


class TemplateProcess:
    """A template that imports modules besides what all flow runs need.

    Parameters:
        place: its socket. It listens as soon as it has imported everything.
    """

    def __init__(self, place: Path, modules: Sequence[str]) -> None:
        self._place = place
        self._has_listened = False
        command = [sys.executable, "-m", "assetflow.worker.template", str(place), *modules]
        # Flow runs get the worker's settings in the same way. A child with the same ones need not read them.
        env = _OF_RUNS | dict(os.environ) | get_current_settings().to_environment_variables(exclude_unset=True)
        # A session of its own: Ctrl-C in the worker's terminal is for the clients.
        self._process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )

    @property
    def takes_runs(self) -> bool:
        """False if it has ended, or has listened and does no more. Until it listens, clients become processes."""
        exists = self._place.exists()
        has_closed = self._has_listened and not exists
        self._has_listened |= exists
        return self._process.poll() is None and not has_closed

    def command(self, module: str) -> list[str]:
        """Return the command that runs a module in its child."""
        return [sys.executable, "-S", "-E", client.__file__, str(self._place), module]

    def let_go(self) -> None:
        """Let it end when its last child has ended."""
        if self._process.stdin is not None:
            self._process.stdin.close()


class TemplateKeeper:
    """A context in which a template runs for each set of modules, at most `MOST_TEMPLATES`.

    One that has ended or takes no more runs is replaced before its next run.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="assetflow-worker-"))
        self._number = 0
        # The least recently used one comes first.
        self._templates: dict[tuple[str, ...], TemplateProcess] = {}

    def __enter__(self) -> Self:
        if CAN_FORK:
            self._find(())
        else:
            logger.info("flow runs are started as new processes: forking is not safe on %s", sys.platform)
        return self

    def __exit__(self, *_: object) -> None:
        """Let the templates end when their last children have ended."""
        while self._templates:
            self._let_oldest_go()
        shutil.rmtree(self._folder, ignore_errors=True)

    def command(self, module: str, preloaded: Sequence[str] = ()) -> list[str] | None:
        """Return the command that runs a module in the child of a template; `None` where forking is not safe.

        Parameters:
            preloaded: what the template imports, besides what all runs need.
        """
        return self._find(tuple(preloaded)).command(module) if CAN_FORK else None

    def _find(self, modules: tuple[str, ...]) -> TemplateProcess:
        """Return the template for some modules, and start it if there is none that takes runs."""
        template = self._templates.pop(modules, None)
        if template is None or not template.takes_runs:
            if template is not None:
                template.let_go()
            self._number += 1
            template = TemplateProcess(self._folder / f"{self._number}.socket", modules)
        self._templates[modules] = template
        if len(self._templates) > MOST_TEMPLATES:
            self._let_oldest_go()
        return template

    def _let_oldest_go(self) -> None:
        self._templates.pop(next(iter(self._templates))).let_go()
