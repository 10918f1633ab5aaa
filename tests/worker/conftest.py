"""A template as a process, runs of small modules in its children, and pools whose worker has such a template."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from assetflow.worker import client
from tests.environment.prefect_server import PrefectServer
from tests.worker.pool import Pool

SECONDS = 60


@dataclass
class Seam:
    """A running template, its socket, and a folder of modules that its children run."""

    process: subprocess.Popen[str]
    place: Path
    folder: Path

    def module(self, name: str, code: str) -> str:
        (self.folder / f"{name}.py").write_text(textwrap.dedent(code))
        return name

    def start(self, module: str, **given: str) -> subprocess.Popen[str]:
        """Start a client; `given` are variables of the environment."""
        command = [sys.executable, "-S", "-E", client.__file__, str(self.place), module]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.folder, env=os.environ | given, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    def run(self, code: str, **given: str) -> tuple[int, str, str]:
        """Run code as a module, and return its exit status and what it wrote."""
        with self.start(self.module("job", code), **given) as started:
            out, err = started.communicate(timeout=SECONDS)
        return started.returncode, out, err


def is_running(number: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@contextmanager
def a_template(place: Path, *modules: str, **given: Any) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "assetflow.worker.template", str(place), *modules]
    # `readline`, which pytest imports, sets variables that `os.environ` does not know.
    given = {"env": dict(os.environ)} | given
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **given) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()
        assert process.wait(SECONDS) in (0, -9, -15)


@pytest.fixture(scope="module")
def shared_template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A template and its socket: one starts in seconds, its children in milliseconds."""
    place = tmp_path_factory.mktemp("template") / "socket"
    with a_template(place) as process:
        yield process, place


@pytest.fixture
def seam(shared_template: tuple[subprocess.Popen[str], Path], tmp_path: Path) -> Iterator[Seam]:
    """The shared template, which still runs after the test."""
    process, place = shared_template
    yield Seam(process, place, tmp_path)
    assert process.poll() is None


@pytest.fixture
def own_seam(tmp_path: Path) -> Iterator[Seam]:
    """A template of the test's own, which may end it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with a_template(tmp_path / "socket") as process:
        yield Seam(process, tmp_path / "socket", folder)


@pytest.fixture(scope="module")
def pool(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    pool = Pool(prefect_server, tmp_path_factory.mktemp("pool"))
    yield pool
    pool.close()


@pytest.fixture
def own_pool(prefect_server: PrefectServer, tmp_path: Path) -> Iterator[Pool]:
    """A pool for one test, which may kill its worker."""
    pool = Pool(prefect_server, tmp_path)
    yield pool
    pool.close()
