"""`assetflow dev`: the embedded stack, left running."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType

from rich.console import Console

from assetflow.cli.values import Port
from assetflow.stack.environment import StackEnvironment, choose_port, find_project
from assetflow.stack.stack import Stack


def dev(*, port: Port | None = None, pages_port: Port | None = None) -> None:
    """Start Prefect, the evaluator, assetflow's pages and a worker, deploy the project's flows, and leave them running.

    Everything is kept under `.assetflow/dev`; what ends on its own is started again. Ctrl-C stops it.

    Parameters:
        port: of the Prefect server; a free one if none is given.
        pages_port: of assetflow's API and pages; a free one if none is given.
    """
    console = Console(stderr=True, highlight=False)
    project = find_project(Path.cwd())
    environment = StackEnvironment(project, project / ".assetflow" / "dev", choose_port(port), choose_port(pages_port))
    stop_on_sigterm()
    try:
        with Stack(environment, console.print) as stack:
            console.print(_told(environment))
            stack.watch()
    except KeyboardInterrupt:
        return


def stop_on_sigterm() -> None:
    """Let SIGTERM stop the stack as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def _told(environment: StackEnvironment) -> str:
    lines = [
        "",
        f"[bold]Assets[/bold]       {environment.pages_url}",
        f"[bold]Prefect[/bold]      {environment.ui_url}",
        f"[bold]Deployments[/bold]  {environment.ui_url}/deployments",
        f"[bold]Automations[/bold]  {environment.ui_url}/automations",
        "",
        "In another terminal:",
        f"    . '{environment.shell_file}'",
        "    prefect deployment run orders-producer/shop",
        "    assetflow events ls",
        "",
        "Ctrl-C stops everything.",
    ]
    return "\n".join(lines)
