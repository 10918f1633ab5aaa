"""One process of the stack: start it with a log file, wait until it is ready, stop it with its children."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from assetflow.errors import StackFailed

MOST = 8

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# The characters that Rich draws boxes and rules with.
_BOXES = re.compile(r"[\u2500-\u257f]+")
_TRACEBACK = "Traceback (most recent call last)"
# The lines between the tracebacks of chained errors, and those that Prefect's commands print after one.
_NOISE = ("The above exception was", "During handling of the above exception", "An exception occurred.")


def last_words(output: str, *, most: int = MOST) -> list[str]:
    """Return the last lines of a process's output, with only the final error of each traceback."""
    return list(_without_tracebacks(map(_plain, output.splitlines())))[-most:]


def _plain(line: str) -> str:
    return _BOXES.sub("", _ESCAPES.sub("", line)).rstrip()


def _without_tracebacks(lines: Iterable[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        if _TRACEBACK in line:
            inside = True
        elif not line.strip() or line.startswith(_NOISE):
            continue
        elif not (inside and line.startswith((" ", "\t"))):
            inside = False
            yield line


POLL_SECONDS = 0.1
STOP_SECONDS = 15.0


class StackProcess:
    """A child process in a process group of its own, so that stopping it stops its children too.

    Parameters:
        name: the name in messages ("worker").
        argv: the command.
        env: its whole environment.
        cwd: its working directory.
        log: the file for its output, which is kept, so that a user can read why it failed.
    """

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path) -> None:
        self.name = name
        self.log = log
        self._argv = list(argv)
        self._env = dict(env)
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None
        self._said_before = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """The exit code; `None` before the process was started and while it runs."""
        return self._process.poll() if self._process else None

    def start(self) -> None:
        """Start the process, and append its output to the log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._said_before = output.tell()
            self._process = subprocess.Popen(
                self._argv,
                env=self._env,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until(self, is_ready: Callable[[], bool], seconds: float) -> None:
        """Wait until the process is ready.

        Raises:
            StackFailed: it ended, or was not ready in time; the error has the last lines of its log.
        """
        end = time.monotonic() + seconds
        while not is_ready():
            if self.exit_code is not None:
                raise self.failure(f"the {self.name} ended with exit code {self.exit_code}")
            if time.monotonic() > end:
                raise self.failure(f"the {self.name} was not ready after {seconds:.0f} s")
            time.sleep(POLL_SECONDS)

    def wait(self, silent_seconds: float) -> int | None:
        """Wait until the process has ended, and return its exit code.

        Parameters:
            silent_seconds: return `None` once it has written nothing to its log for so long.
        """
        size, end = -1, 0.0
        while self.exit_code is None:
            if (now_size := self.log.stat().st_size) != size:
                size, end = now_size, time.monotonic() + silent_seconds
            if time.monotonic() > end:
                return None
            time.sleep(POLL_SECONDS)
        return self.exit_code

    def stop(self) -> None:
        """Stop the process and its children; return at once if it is stopped already."""
        if self._process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._signal_group(number) and self._ended_within(STOP_SECONDS):
                break
        # Its children may outlive it: stop the whole process group.
        self._signal_group(signal.SIGKILL)
        self._process.wait()

    def failure(self, what: str) -> StackFailed:
        """Return an error with the last lines of the log."""
        said = self.last_words()
        return StackFailed(f"{what}; its log ends with:" if said else what, fix=f"Read {self.log}", output=said)

    def last_words(self) -> list[str]:
        """Return the last lines that the process wrote since it was started."""
        if not self.log.exists():
            return []
        return last_words(self.log.read_bytes()[self._said_before :].decode(errors="replace"))

    def _signal_group(self, number: signal.Signals) -> bool:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
            return True
        return False

    def _ended_within(self, seconds: float) -> bool:
        assert self._process is not None
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
