"""`assetflow demo`: run the example pipelines on real data and show what happened."""

from __future__ import annotations

import json as json_format
import sys
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.text import Text

from assetflow.cli.stacks import stop_on_signals
from assetflow.cli.values import Port
from assetflow.errors import StackFailed
from assetflow.stack.demo import Demo
from assetflow.stack.environment import StackEnvironment, choose_port, find_project
from assetflow.stack.show import show


def demo(*, port: Port | None = None, json: bool = False) -> int:
    """Run the flows of this project in a stack of its own, then show which update led to which run.

    The exit status is 1 if a consumer did not run exactly as often as the contract says, or if a number is wrong. The
    command also writes the summary to `.assetflow/demo/summary.json`.

    Parameters:
        port: the port of the Prefect server; by default a free one.
        json: print the summary as one JSON document instead of tables.
    """
    project = find_project(Path.cwd())
    environment = StackEnvironment(project, project / ".assetflow" / "demo", choose_port(port))
    if not (project / "flows" / "check.py").exists():
        raise StackFailed(
            "the demo runs the pipelines of assetflow's own repository, and this folder is not part of it",
            where=str(project),
            fix="Clone the repository and run `make demo` there; `assetflow dev` serves this project",
        )
    progress = Console(stderr=True, highlight=False, soft_wrap=True)
    stop_on_signals()
    waiting = progress.status("Starting") if progress.is_terminal else None
    with waiting or nullcontext():
        # As `Text`, because the words may hold what Rich takes for markup, such as `assetflow[java]`.
        tell = waiting.update if waiting else progress.print
        result = Demo(environment, lambda line: tell(Text(line))).run()
    if json:
        sys.stdout.write(json_format.dumps(result.summary, indent=2) + "\n")
    else:
        Console(highlight=False).print(show(result.story, result.summary))
    return 0 if result.summary["ok"] else 1
