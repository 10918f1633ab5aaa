"""The embedded stack of this project, in a folder of a test's own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assetflow.stack.environment import StackEnvironment, choose_port
from assetflow.stack.stack import Stack
from tests.environment.prefect_database import spare_first_start

ROOT = Path(__file__).parents[2]


@contextmanager
def running_stack(home: Path) -> Iterator[StackEnvironment]:
    """The stack of `assetflow dev` with its files in `home`, stopped in the end."""
    environment = StackEnvironment(ROOT, home, choose_port(None))
    spare_first_start(home)
    told: list[str] = []
    with Stack(environment, told.append):
        yield environment


def assetflow(environment: StackEnvironment, *arguments: str) -> Any:
    """What a command of assetflow, called as in another terminal, answers as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "assetflow", *arguments, "--json"],
        env=environment.processes_env,
        cwd=environment.project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
