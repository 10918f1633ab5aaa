"""A run that is an ordinary process has a note that tells which one, because not each process holds its note."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from prefect.workers.process import ProcessWorker

from assetflow.worker import client
from assetflow.worker.taken_runs import TakenRuns, held
from assetflow.worker.worker import WarmJobConfiguration, WarmWorker
from tests.worker.conftest import SECONDS

RUN = uuid4()
WAITS = "import sys; print('ready', flush=True); sys.stdin.read()"
# As sudo and ssh do.
CLOSES = f"import os, sys; os.closerange(3, 100); os.execv(sys.executable, [sys.executable, '-c', {WAITS!r}])"
# The process that began ends, and another one of the same command goes on.
LEAVES = f"import os, sys\nif os.fork() == 0:\n    exec({WAITS!r})"


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """The note of a run whose worker has died."""
    with TakenRuns(tmp_path / "notes", "dead") as dying:
        return dying.note(RUN)


def command(note: Path, *words: str) -> list[str]:
    return [sys.executable, "-S", "-E", client.__file__, client.COMMAND, str(note), *words]


@contextmanager
def a_run(note: Path, code: str) -> Iterator[None]:
    """A run with a command, from the line that it writes to its end."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command(note, sys.executable, "-c", code), stdin=pipe, stdout=pipe, text=True) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        yield
        started.communicate("", timeout=SECONDS)


def has_a_process(note: Path) -> bool:
    with held(note) as run:
        return run is None


@pytest.mark.parametrize("code", [WAITS, CLOSES, LEAVES], ids=["keeps the lock", "closes the lock", "passes it on"])
def test_a_run_with_a_command_has_a_process_until_that_has_ended(note: Path, code: str) -> None:
    assert not has_a_process(note)
    with a_run(note, code):
        assert has_a_process(note)
    with held(note) as run:
        assert run is not None
        assert (run.began, run.is_ordinary) == (True, True)


def test_a_process_that_has_the_number_of_an_earlier_one_is_another(note: Path) -> None:
    note.write_bytes(b"began %d 1" % os.getpid())
    assert not has_a_process(note)
    note.write_bytes(b"began " + client.mark_of(os.getpid()))
    assert has_a_process(note)


async def test_a_note_tells_the_process_that_prefect_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Prefect starts a run itself whose packages it installs."""
    run: Any = SimpleNamespace(id=RUN)
    said: list[bytes] = []
    told: list[int | None] = []

    async def start(_worker: object, _run: object, _configuration: object, status: Any) -> None:
        said.append(note.read_bytes())
        status.started(os.getpid())
        said.append(note.read_bytes())
        assert has_a_process(note)

    monkeypatch.setattr(ProcessWorker, "run", start)
    with TakenRuns(tmp_path, "worker") as taken:
        monkeypatch.setattr(WarmJobConfiguration, "taken", taken)
        note = taken.note(run.id)
        status: Any = SimpleNamespace(started=told.append)
        await WarmWorker(work_pool_name="pool").run(run, WarmJobConfiguration(), status)
        assert not note.exists()
    assert said == [b"", b"began " + client.mark_of(os.getpid())]
    assert told == [os.getpid()]
