"""Keep a template running for a worker."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from prefect.logging import get_logger

from assetflow.worker import client

logger = get_logger("worker.assetflow")

SECONDS_TO_STOP = 5.0
# Elsewhere, libraries of the system do not survive a fork.
CAN_FORK = sys.platform == "linux"


class TemplateKeeper:
    """A context in which a template runs, or is replaced before the next run if it has ended or takes no more runs."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="assetflow-worker-"))
        self._number = 0
        self._has_listened = False
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if CAN_FORK:
            self._start()
        else:
            logger.info("flow runs are started as new processes: forking is not safe on %s", sys.platform)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the template end when its last child has ended."""
        self._let_go()
        shutil.rmtree(self._folder, ignore_errors=True)

    def command(self) -> str | None:
        """Return the command with which a flow run starts; `None` for an ordinary process."""
        if not CAN_FORK:
            return None
        if self._process is None or self._process.poll() is not None or not self._is_open():
            self._let_go()
            self._start()
        # Until it listens, clients become ordinary processes.
        return shlex.join([sys.executable, "-S", "-E", client.__file__, str(self._place), "prefect.engine"])

    @property
    def _place(self) -> Path:
        return self._folder / f"{self._number}.socket"

    def _is_open(self) -> bool:
        """Return False if the template has listened, and does no more."""
        exists = self._place.exists()
        has_closed = self._has_listened and not exists
        self._has_listened |= exists
        return not has_closed

    def _start(self) -> None:
        self._number += 1
        self._has_listened = False
        command = [sys.executable, "-m", "assetflow.worker.template", str(self._place)]
        # A session of its own: Ctrl-C in the worker's terminal is for the clients.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )

    def _let_go(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None
