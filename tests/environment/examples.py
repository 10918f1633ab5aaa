"""The examples of `deployments/`, and `assetflow dev`: commands and settings as they stand there and as they run."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.environment.waiting import until

ROOT = Path(__file__).parents[2]
DEPLOYMENTS = ROOT / "deployments"


def commands(example: str) -> list[str]:
    """The blocks that a person types, in the order of the page."""
    page = (DEPLOYMENTS / example / "README.md").read_text()
    return [block.strip() for block in re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)]


def env_file(place: str) -> dict[str, str]:
    """The settings of an environment file."""
    lines = (DEPLOYMENTS / place).read_text().splitlines()
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def with_our_python(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which `python`, `prefect` and `assetflow` are those of the tests."""
    return {**environment, "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}"}


def plain_environment() -> dict[str, str]:
    """An environment in which nothing is set that an example is to set."""
    ours = ("PREFECT_", "ASSETFLOW_")
    return with_our_python({name: value for name, value in os.environ.items() if not name.startswith(ours)})


@contextmanager
def running(script: str, env: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """What a terminal of its own would run, until the block ends; it may be killed, and does not end by itself."""
    with log.open("ab") as output:
        command = ["/bin/sh", "-ec", script]
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output, start_new_session=True)
    try:
        yield process
        assert process.poll() in (None, -signal.SIGKILL), log.read_text()[-3000:]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(40)


@contextmanager
def dev(command: Sequence[str], folder: Path, log: Path, env: Mapping[str, str] | None = None) -> Iterator[None]:
    """The stack of a folder, as `assetflow dev` keeps it until the block ends."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=output, stderr=output, start_new_session=True)
    try:
        until(lambda: "Ctrl-C stops everything" in log.read_text() or process.poll() is not None, seconds=240)
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        try:
            assert process.wait(120) == 0, log.read_text()
        finally:
            process.kill()


def answers(url: str, **headers: str) -> bool:
    """Whether somebody answers there, and is content."""
    try:
        return httpx.get(url, headers=headers, timeout=5).is_success
    except httpx.TransportError:
        return False
