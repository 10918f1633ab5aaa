"""A class of the user's own runs in a process of its own, and its changes become updates (10.2, 10.4)."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from assetflow.ledger import Ledger
from assetflow.watchers import ClassTrigger
from tests.environment.waiting import until, until_async
from tests.watching.outside import Direct, updates, watch, watching

MODULE = """
import asyncio, os, signal, subprocess, sys, time
from pathlib import Path
from assetflow.watchers import Change

class Lines:
    # The lines of a file; what is recorded is written to another one.

    def __init__(self, file, secret=None):
        self.file, self.secret = Path(file), secret

    async def watch(self, cursor):
        print("this does not disturb")
        Path(f"{self.file}.pid").write_text(str(os.getpid()))
        at = cursor or 0
        while True:
            lines = self.file.read_text().splitlines() if self.file.exists() else []
            for line in lines[at:]:
                at += 1
                if line == "fail":
                    raise ValueError("this line fails")
                if line == "wrong":
                    yield line
                if line == "large":
                    yield Change("large", {"text": "x" * 2**24})
                if line == "cursor":
                    yield Change("cursor", cursor=float("nan"))
                yield Change(f"{at}", {"line": line, "secret": self.secret}, cursor=at)
                with Path(f"{self.file}.recorded").open("a") as recorded:
                    recorded.write(line)
            await asyncio.sleep(0.02)


class Stubborn:
    # It blocks, ignores signals, and begins a process that does so too.

    def __init__(self, file):
        self.file = file

    async def watch(self, cursor):
        yield Change("begun")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", self.file])
        time.sleep(1000)
"""


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the class reads."""
    (tmp_path / "own_lines.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("OWN_SECRET", "hunter2")
    return tmp_path / "lines"


def trigger(lines: Path) -> ClassTrigger:
    return ClassTrigger("own_lines:Lines", options={"file": str(lines), "secret": "${OWN_SECRET}"})


def write(file: Path, *lines: str) -> None:
    file.write_text("".join(f"{line}\n" for line in lines))


def told(direct: Direct) -> list[object]:
    return [event.extra["line"] for event in updates(direct.ledger)]


async def test_rule_10_4_a_change_is_an_update_and_the_class_begins_at_its_cursor(direct: Direct, lines: Path) -> None:
    watch(direct.ledger, trigger(lines))
    async with watching(direct):
        write(lines, "a", "b")
        await until_async(lambda: told(direct) == ["a", "b"])
        recorded = lines.with_suffix(".recorded")
        await until_async(lambda: recorded.exists() and recorded.read_text() == "ab")
        pid = int(lines.with_suffix(".pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    write(lines, "a", "b", "c")
    async with watching(direct):
        await until_async(lambda: told(direct) == ["a", "b", "c"])
    (first, *_) = updates(direct.ledger)
    assert (first.origin.by, first.extra["secret"]) == ("class own_lines:Lines, 1", "hunter2")


@pytest.mark.long
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_of_a_class_outlives_the_one_that_watches(tmp_path: Path, lines: Path, end: signal.Signals) -> None:
    environment = {**os.environ, "ASSETFLOW_HOME": str(tmp_path), "PREFECT_API_URL": ""}
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        watch(ledger, ClassTrigger("own_lines:Stubborn", options={"file": str(lines)}))
    watcher = subprocess.Popen([sys.executable, "-m", "assetflow", "watcher", "start"], env=environment)
    try:
        # The one that watches, the class, and what the class has begun.
        begun = until(lambda: _named(str(lines)))
        (of_class,) = {_parent(each) for each in begun}
        watcher.send_signal(end)
        watcher.wait()
        until(lambda: not _named(str(lines)) and not Path(f"/proc/{of_class}/stat").exists())
    finally:
        watcher.kill()
        watcher.wait()


def _named(text: str) -> list[int]:
    """Return the processes that run and have the text among their arguments."""
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if text in (each / "cmdline").read_bytes().decode().split("\0"):
                found.append(int(each.name))
    return found


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
