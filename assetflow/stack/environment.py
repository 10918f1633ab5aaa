"""The environment of a stack: its folders, its ports, and its processes with their variables."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from assetflow.errors import PortInUse, StackFailed

# Variables with which a shell would still use another installation's ledger, or send its keys to this one.
_OF_OTHERS = (
    "ASSETFLOW_DATABASE_URL",
    "ASSETFLOW_API_URL",
    "ASSETFLOW_API_KEY",
    "PREFECT_API_AUTH_STRING",
    "PREFECT_API_KEY",
)


@dataclass(frozen=True)
class StackEnvironment:
    """One stack of one project: everything it writes is under `home`.

    Attributes:
        project: the folder with `prefect.yaml`.
        home: `.assetflow/dev` or `.assetflow/demo` in the project.
        port: the port of the Prefect server on 127.0.0.1.
        pages_port: the port of assetflow's API and pages on 127.0.0.1; by default a free one.
    """

    project: Path
    home: Path
    port: int
    pages_port: int = field(default_factory=lambda: choose_port(None))

    @property
    def state_file(self) -> Path:
        """The file with the pids and the ports of the stack, which is locked while the stack runs."""
        return self.home / "stack.json"

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def ui_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pages_url(self) -> str:
        return f"http://127.0.0.1:{self.pages_port}"

    @property
    def has_spark_server(self) -> bool:
        """True if the flow runs share Spark's own local Connect server."""
        return self.variables["ASSETFLOW_SPARK_REMOTE"] == "local" and find_spec("pyspark") is not None

    def check_java(self) -> None:
        """Check that Spark's server will find the Java that it needs.

        Raises:
            JavaNotFound: there is none.
        """
        from assetflow.spark.java import find_java

        given = self.processes_env
        find_java(given.get("JAVA_HOME", ""), given["PATH"])

    @property
    def spark_server_file(self) -> Path:
        """The file that says where Spark's own local Connect server listens."""
        return self.home / "spark" / "connect.json"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def variables(self) -> dict[str, str]:
        """The variables that differ from the caller's environment: enough for another terminal to use this stack."""
        # The Spark that the flows run on is the caller's choice, or a local server that they share.
        spark = {name: value for name, value in os.environ.items() if name.startswith("ASSETFLOW_SPARK_")}
        return {
            "PREFECT_HOME": str(self.home / "prefect"),
            "PREFECT_API_URL": self.api_url,
            "PREFECT_UI_URL": self.ui_url,
            # The server sends no telemetry. This keeps Prefect's commands from announcing theirs.
            "DO_NOT_TRACK": "1",
            "ASSETFLOW_HOME": str(self.home),
            "ASSETFLOW_UI_URL": self.pages_url,
            "ASSETFLOW_SPARK_REMOTE": "local",
            **spark,
        }

    @property
    def processes_env(self) -> dict[str, str]:
        """The environment of the stack's processes: of the caller's Prefect and assetflow settings, only Spark's."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ASSETFLOW_"))
        }
        # Put the commands of this environment (prefect, python) first on the PATH.
        path = os.pathsep.join((str(Path(sys.executable).parent), inherited.get("PATH", "")))
        quiet = {
            "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_API_HOST": "127.0.0.1",
            "PREFECT_SERVER_API_PORT": str(self.port),
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            # On SQLite, a busy server answers 503. After 5 retries, Prefect's default, a worker calls a run crashed.
            "PREFECT_CLIENT_MAX_RETRIES": "8",
            "PREFECT_CLI_PROMPT": "false",
            # The output of the stack's processes goes to log files: write it in whole lines, without colours.
            "COLUMNS": "200",
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",
        }
        return inherited | {"PATH": path} | quiet | self.variables

    @property
    def shell_file(self) -> Path:
        """The file that a shell can source to use this stack."""
        return self.home / "env"

    def write_shell_file(self) -> None:
        lines = [f"unset {' '.join(_OF_OTHERS)}"]
        lines += [f"export {name}={shlex.quote(value)}" for name, value in self.variables.items()]
        lines.append(f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH")
        self.shell_file.write_text("\n".join(lines) + "\n")


def find_project(start: Path) -> Path:
    """Return the project of a folder: the folder itself, or the nearest one above it, that has a `prefect.yaml`.

    Raises:
        StackFailed: no folder has one.
    """
    for folder in (start, *start.parents):
        if (folder / "prefect.yaml").exists():
            return folder
    raise StackFailed(
        f"there is no prefect.yaml in {start} or above it",
        fix="Run this in the folder of your project; its prefect.yaml names the flows: "
        "deployments: [{name: shop, entrypoint: 'flows.py:report'}]",
    )


def last_ports(home: Path) -> tuple[int | None, int | None]:
    """Return the ports of Prefect's server and of the pages when the stack in a folder ran last."""
    try:
        noted = json.loads((home / "stack.json").read_text())
        return int(noted["port"]), int(noted["pages_port"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, None


def choose_port(asked: int | None, *, option: str = "--port", last: int | None = None) -> int:
    """Return the port that the user asked for; else the one of the last start, if it is free; else a free one.

    Parameters:
        asked: the port, or `None` if the user left the choice.
        option: the option with which the user asked for it.
        last: the port that this stack had when it ran last, so that open pages and other terminals find it again.

    Raises:
        PortInUse: the port that the user asked for is taken.
    """
    if asked is None:
        return (last and _bound(last)) or cast(int, _bound(0))
    if _bound(asked) is None:
        raise PortInUse(
            f"port {asked} is in use",
            fix=f"Stop the process that listens there, or choose another port with {option}",
        )
    return asked


def _bound(port: int) -> int | None:
    """Return the port that a server would get here, or `None` if it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError):
            return None
        return int(probe.getsockname()[1])


MOST = 8

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# The characters that Rich draws boxes and rules with.
_BOXES = re.compile(r"[\u2500-\u257f]+")
_TRACEBACK = "Traceback (most recent call last)"
# The lines between the tracebacks of chained errors, and those that Prefect's commands print after one.
_NOISE = ("The above exception was", "During handling of the above exception", "An exception occurred.")


def last_words(output: str, *, most: int = MOST) -> list[str]:
    """Return the last lines of a process's output, with only the final error of each traceback."""
    plain = (_BOXES.sub("", _ESCAPES.sub("", line)).rstrip() for line in output.splitlines())
    return list(_without_tracebacks(plain))[-most:]


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
