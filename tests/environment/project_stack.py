"""The embedded stack of this project, in a folder of a test's own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from assetflow.stack.environment import StackEnvironment, choose_port
from assetflow.stack.stack import Stack

ROOT = Path(__file__).parents[2]
SECONDS = 120.0

T = TypeVar("T")


@contextmanager
def running_stack(home: Path) -> Iterator[StackEnvironment]:
    """The stack of `assetflow dev` with its files in `home`, stopped in the end."""
    environment = StackEnvironment(ROOT, home, choose_port(None))
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


def until(condition: Callable[[], T | None], *, seconds: float = SECONDS) -> T:
    """The first answer that is true."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"not within {seconds:.0f} s"
        time.sleep(0.1)
    return answer
