"""A child of the template: what is imported before the fork, and how it becomes `python -m prefect.engine` after it."""

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
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect.settings import PREFECT_LOGGING_SETTINGS_PATH, PREFECT_PROFILES_PATH
from pydantic import BaseModel

from assetflow.prefect_io.internals import share_certificates
from assetflow.worker.client import BEGIN, read_exactly

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


# In the folder of the process.
_FILES = (".env", "prefect.toml", "pyproject.toml")
# Besides Prefect's own: the place of its home, and what the console handler looks at when it is made.
_TERMINAL_NAMES = frozenset({"HOME", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"})


@dataclass(frozen=True)
class SettingsSources:
    """The variables and files from which Prefect's settings and logging are made.

    Attributes:
        files: place, time of the last change and size of those that exist.
        has_terminal: the error output is one, so that logs have colours.
    """

    variables: dict[str, str]
    files: tuple[tuple[str, int, int], ...]
    has_terminal: bool


def read_sources() -> SettingsSources:
    """Return what this process would make Prefect's settings and logging from now."""
    places = [*map(Path, _FILES), PREFECT_PROFILES_PATH.value(), PREFECT_LOGGING_SETTINGS_PATH.value()]
    files: list[tuple[str, int, int]] = []
    for place in places:
        if place.is_file():
            found = place.stat()
            files.append((str(place.absolute()), found.st_mtime_ns, found.st_size))
    variables = {name: value for name, value in os.environ.items() if _is_read(name)}
    return SettingsSources(variables, tuple(files), os.isatty(2))


def _is_read(name: str) -> bool:
    # Two underscores: what Prefect hands to one flow run, which is not a setting.
    return name in _TERMINAL_NAMES or (name.startswith("PREFECT_") and not name.startswith("PREFECT__"))


def set_up() -> None:
    """Make Prefect's settings and logging from what there is now."""
    from prefect.context import refresh_global_settings_context
    from prefect.logging.configuration import setup_logging

    refresh_global_settings_context()
    setup_logging(incremental=False)
    share_certificates()


# What each flow run imports before it reaches the user's code.
_NEEDED = (
    "prefect.engine",
    "prefect.flow_engine",
    "prefect.task_engine",
    "prefect.deployments.steps.core",
    "assetflow.authoring.flows",
    "assetflow.authoring.tasks",
    # Tells which events a task's inlets have, and imports SQLAlchemy.
    "assetflow.ledger.read.reader",
    "assetflow.prefect_io.connection",
    "assetflow.spark.task",
    "assetflow.spark.reading",
)
# What many flow runs import, if it is installed.
_USEFUL = (
    "anyio._backends._asyncio",
    "encodings.idna",
    "prefect.utilities.visualization",
    "pydantic.v1",
    "pyspark.sql.connect.session",
    "rich._emoji_codes",
)


def preload() -> None:
    """Import what flow runs need, and what many of them import, and do once what each of them would do."""
    for name in _NEEDED:
        importlib.import_module(name)
    for name in _USEFUL:
        with suppress(ImportError):
            importlib.import_module(name)
    _complete_models(BaseModel)


def _complete_models(base: type[BaseModel]) -> None:
    """Build what pydantic leaves to the first use of a model."""
    for model in base.__subclasses__():
        model.model_rebuild(raise_errors=False)
        _complete_models(model)


def why_not_preload(name: str) -> str | None:
    """Import a module that the user wants besides, and return why it cannot be imported, or `None`."""
    try:
        importlib.import_module(name)
    # A module may raise anything while it is imported, and `SystemExit` too.
    except (Exception, SystemExit) as error:
        return f"cannot be imported ({type(error).__name__}: {error})"
    return None


_PREFIXES = ("PYTHON", "LD_", "MALLOC_", "OMP_", "OPENBLAS_", "MKL_", "ARROW_", "LC_")
_START_NAMES = frozenset({"LANG", "SSL_CERT_FILE"})


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that counts only when a process starts."""
    return {name: value for name, value in environment.items() if name.startswith(_PREFIXES) or name in _START_NAMES}


def differs(environment: Mapping[str, str], own: Mapping[str, str] = os.environ) -> bool:
    """Return True if a run with this environment needs a process of its own."""
    return read_at_start(environment) != read_at_start(own)
