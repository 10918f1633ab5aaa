"""A child of the template: from the fork to the end of the flow run, it becomes what `python -m prefect.engine` is."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any

from assetflow.worker.client import BEGIN, read_exactly
from assetflow.worker.preload import SettingsSources, read_sources, set_up

_STREAMS = 3
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Job:
    """A module to run, as `python -m` does, with the environment, the folder and the descriptors of the client.

    Attributes:
        descriptors: its input, output and error output, and what else it keeps open, such as the lock of its note.
        waits: the pipe on which the child waits until it may begin.
    """

    module: str
    environment: dict[str, str]
    folder: str
    umask: int
    descriptors: tuple[int, ...]
    waits: int = -1

    def close(self) -> None:
        """Close the client's descriptors in this process."""
        for each in self.descriptors:
            os.close(each)

    def do(self, known: SettingsSources) -> None:
        """Run the module in this process, as soon as the client says so.

        Parameters:
            known: what the settings of Prefect in this process were made from.
        """
        if os.read(self.waits, 1) != BEGIN:
            os._exit(1)
        os.close(self.waits)
        for target, each in enumerate(self.descriptors[:_STREAMS]):
            os.dup2(each, target)
            os.close(each)
        os.umask(self.umask)
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        _set_up_process(self.folder)
        if read_sources() != known:
            set_up()
        sys.argv[:] = sys.argv[:1]
        # Loaded already: as the main module it is run once more.
        sys.modules.pop(self.module, None)
        runpy.run_module(self.module, run_name="__main__", alter_sys=True)


def read_job(client: socket.socket) -> Job:
    """Read the job that a client sends.

    Raises:
        OSError: the client has gone, or is too slow.
        ValueError: something else than a client has connected.
    """
    size, descriptors, flags, _ = socket.recv_fds(client, 4, _STREAMS + 1)
    try:
        if len(size) != 4 or len(descriptors) < _STREAMS:
            raise ValueError("not a client")
        if flags & socket.MSG_CTRUNC:
            # The lock of its note may be missing.
            raise ValueError("too many open files")
        for each in descriptors:
            # A program that the run starts is not the run.
            os.set_inheritable(each, False)
        given: dict[str, Any] = json.loads(read_exactly(client, int.from_bytes(size, "big")))
        environment = {str(name): str(value) for name, value in given["environment"].items()}
        return Job(given["module"], environment, given["folder"], given["umask"], tuple(descriptors))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        for each in descriptors:
            os.close(each)
        raise ValueError("not a client") from error


def become(parent: int) -> None:
    """Leave the template, immediately after the fork: own session, own signals, and death with the template."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _set_up_process(folder: str) -> None:
    """Set what a process reads from its environment when it starts, or draws at random."""
    time.tzset()
    sys.path[0] = folder
    importlib.invalidate_caches()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
