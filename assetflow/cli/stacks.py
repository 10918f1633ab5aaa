"""`assetflow dev`: start the whole stack for a project and keep it running."""

from __future__ import annotations

import json as json_format
import shlex
import signal
import sys
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import Annotated

import cyclopts
from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from assetflow.cli.output import text
from assetflow.cli.values import Port
from assetflow.core.values.words import shown, some
from assetflow.errors import StackFailed
from assetflow.ledger.read.reader import Reader
from assetflow.stack.calls import PrefectCalls
from assetflow.stack.demo import Demo
from assetflow.stack.environment import StackEnvironment, choose_port, find_project, last_ports
from assetflow.stack.flow_files import read_project
from assetflow.stack.stack import STOPPING, Stack
from assetflow.stack.summary import show


def dev(
    *,
    port: Port | None = None,
    pages_port: Port | None = None,
    reload: Annotated[bool, Parameter(negative="--no-reload")] = True,
) -> None:
    """Start Prefect, the evaluator, its pages, watchers and workers, deploy the project's flows, and leave all running.

    The command serves any folder with a `prefect.yaml`: it creates the work pools named there and runs a worker for
    each. It keeps its files under `.assetflow/dev`, restarts a process that ends on its own, and deploys the flows
    again when a file of the project has changed. Ctrl-C stops all.

    Parameters:
        port: the port of the Prefect server; by default that of the last start, the first time a free one.
        pages_port: the port of assetflow's API and pages; by default as for the Prefect server.
        reload: deploy the flows again when a file changes; with --no-reload, only `prefect deploy` does.
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    project = find_project(Path.cwd())
    home = project / ".assetflow" / "dev"
    last_port, last_pages_port = last_ports(home)
    prefect_port = choose_port(port, last=last_port)
    environment = StackEnvironment(
        project, home, prefect_port, choose_port(pages_port, option="--pages-port", last=last_pages_port)
    )
    stop_on_signals()
    try:
        with Stack(environment, lambda line: console.print(Text(shown(line)))) as stack:
            console.print(_instructions(environment, *_deployed(environment)))
            stack.watch(reload=reload)
    except KeyboardInterrupt:
        return


def stop_on_signals() -> None:
    """Let SIGTERM and a terminal that is closed stop the stack as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in STOPPING:
        # Under `nohup` the end of the terminal is ignored, and stays so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)
        elif number == signal.SIGINT:
            # A shell lets a job in the background ignore Ctrl-C. So does this process, but not those that it starts:
            # Prefect's worker stops itself with SIGINT.
            signal.signal(number, lambda _number, _frame: None)


def _deployed(environment: StackEnvironment) -> tuple[Sequence[str], AbstractSet[str]]:
    """Return the deployments of the project as flow/deployment, and the consumers that the ledger knows."""
    with PrefectCalls(environment.api_url) as calls:
        names = calls.deployments()
    with Reader.open(environment.home / "ledger.db") as reader:
        consumers = {record.consumer.name for record in reader.consumers.all()}
    given = [(each.entrypoint, each.name) for each in read_project(environment.project).deployments]
    # Prefect may have filled in a variable in a name: then all of Prefect's count as the project's.
    listed = [names[each] for each in given if each in names]
    return listed if len(listed) == len(given) else list(names.values()), consumers


def _instructions(environment: StackEnvironment, deployed: Sequence[str], consumers: AbstractSet[str]) -> Text:
    addresses = {
        "Assets": environment.pages_url,
        "Prefect": environment.ui_url,
        "Deployments": f"{environment.ui_url}/deployments",
        "Automations": f"{environment.ui_url}/automations",
    }
    # The first one that does not wait for assets: there is something to see at once.
    example = next((name for name in deployed if name not in consumers), deployed[0])
    lines = [Text(), *(Text.assemble((f"{name:<12} ", "bold"), address) for name, address in addresses.items()), Text()]
    commands = (f". {shlex.quote(str(environment.shell_file))}", f"prefect deployment run {shlex.quote(example)}")
    lines += map(Text, ("In another terminal:", *(f"    {each}" for each in commands), "    assetflow events ls"))
    if left := sorted(consumers - set(deployed)):
        lines += (Text(), text(f"The project no longer deploys {some(left)}: assetflow consumers prune"))
    lines += map(Text, ("", "Ctrl-C stops everything."))
    return Text("\n").join(lines)


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


app = cyclopts.App(name="spark", help="Spark's own local Connect server, shared by this project's flow runs.")


@app.command
def start() -> None:
    """Start the local Connect server of this ASSETFLOW_HOME, if none is running. It runs until it is stopped."""
    from assetflow.spark.session import start_local_server

    start_local_server()
    sys.stdout.write("ready\n")


@app.command
def stop() -> None:
    """Stop the local Connect server of this ASSETFLOW_HOME, if one is running."""
    from assetflow.spark.session import stop_local_server

    sys.stdout.write("stopped\n" if stop_local_server() else "no server runs\n")
