"""The hooks of a flow run that was cancelled or has crashed, in a process of their own.

Prefect's worker would load the flow in its own process: what the flow's module and its pull steps change there would
stay, for all later runs. `python -m assetflow.worker.hooks` reads the flow run and its state from its input.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from prefect.client.schemas.objects import FlowRun, State
from prefect.logging.handlers import APILogHandler
from prefect.logging.loggers import flow_run_logger
from prefect.settings import get_current_settings

from assetflow.prefect_io.internals import call_hooks


@dataclass(frozen=True)
class HookProcess:
    """The command that calls the hooks of one flow run in a process of its own.

    Attributes:
        command: what starts it.
        environment: what the flow run has besides the environment and the settings of the worker.
        folder: its working directory; a temporary one if it has none.
    """

    command: Sequence[str]
    environment: Mapping[str, str | None]
    folder: Path | None

    async def run_cancellation_hooks(self, flow_run: FlowRun, state: State[Any]) -> None:
        """Call the hooks for the state of a run that was cancelled or has crashed."""
        given = {"flow_run": flow_run.model_dump(mode="json"), "state": state.model_dump(mode="json")}
        settings = get_current_settings().to_environment_variables(exclude_unset=True)
        environment = dict(os.environ) | settings | dict(self.environment)
        place: AbstractContextManager[str | Path]
        place = TemporaryDirectory(suffix="prefect") if self.folder is None else nullcontext(self.folder)
        with place as folder:
            done = await anyio.run_process(
                self.command,
                input=json.dumps(given).encode(),
                stdout=None,
                stderr=None,
                check=False,
                cwd=folder,
                env={name: value for name, value in environment.items() if value is not None},
            )
        if done.returncode:
            logger = flow_run_logger(flow_run)
            logger.warning("The hooks of this flow run were not called: exit status %s.", done.returncode)

    run_crashed_hooks = run_cancellation_hooks


async def main() -> None:
    """Call the hooks of the flow run that the input describes."""
    given = json.load(sys.stdin)
    await call_hooks(FlowRun.model_validate(given["flow_run"]), State[Any].model_validate(given["state"]))
    await APILogHandler.aflush()


if __name__ == "__main__":
    asyncio.run(main())
