"""One process of the stack: started with a log file, known to be ready, stopped for good."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from assetflow.errors import StackFailed

POLL_SECONDS = 0.1
STOP_SECONDS = 15.0


class StackProcess:
    """A child process in a process group of its own, so that stopping it stops its children too.

    Parameters:
        name: what a person calls it ("worker").
        argv: the command.
        env: its whole environment.
        cwd: its working directory.
        log: the file that takes its output; kept, so that a failure can be read.
    """

    def __init__(self, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path) -> None:
        self.name = name
        self.log = log
        self._argv = list(argv)
        self._env = dict(env)
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """How it ended; none while it runs or before it was started."""
        return self._process.poll() if self._process else None

    def start(self) -> None:
        """Start it; its output is appended to the log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
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
        """Wait until it is ready.

        Raises:
            StackFailed: it ended, or was not ready in time; the last lines of its log are told.
        """
        end = time.monotonic() + seconds
        while not is_ready():
            if self.exit_code is not None:
                raise self.failure(f"the {self.name} ended with exit code {self.exit_code}")
            if time.monotonic() > end:
                raise self.failure(f"the {self.name} was not ready after {seconds:.0f} s")
            time.sleep(POLL_SECONDS)

    def stop(self, signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGKILL)) -> None:
        """Stop it and all that it started; at once if it is stopped already."""
        if self._process is None:
            return
        for number in signals:
            if self._signal_group(number) and self._ended_within(STOP_SECONDS):
                break
        # What it started may outlive it: the group goes as a whole.
        self._signal_group(signal.SIGKILL)
        self._process.wait()

    def failure(self, what: str) -> StackFailed:
        """The error that tells what its log says."""
        lines = self.log.read_text(errors="replace").splitlines()[-8:] if self.log.exists() else []
        told = "".join(f"\n    {line}" for line in lines)
        return StackFailed(f"{what}; its log ends with:{told}", fix=f"Read {self.log}")

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
