"""The environment of a stack: its folders, its ports, and the variables of its processes."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
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
        return _state_file(self.home)

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
        return {
            "PREFECT_HOME": str(self.home / "prefect"),
            "PREFECT_API_URL": self.api_url,
            "PREFECT_UI_URL": self.ui_url,
            # The server sends no telemetry. This keeps Prefect's commands from announcing theirs.
            "DO_NOT_TRACK": "1",
            "ASSETFLOW_HOME": str(self.home),
            "ASSETFLOW_UI_URL": self.pages_url,
            **self._spark,
        }

    @property
    def _spark(self) -> dict[str, str]:
        """Return the settings of the Spark that the flows run on: the caller's choice, or a shared local server."""
        chosen = {name: value for name, value in os.environ.items() if name.startswith("ASSETFLOW_SPARK_")}
        return {"ASSETFLOW_SPARK_REMOTE": "local"} | chosen

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
        noted = json.loads(_state_file(home).read_text())
        return int(noted["port"]), int(noted["pages_port"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, None


def _state_file(home: Path) -> Path:
    return home / "stack.json"


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
