"""Where a stack keeps its files, on which ports it listens, and the environment that its processes share."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path

from assetflow.errors import PortInUse, StackFailed

POOL = "assetflow"


@dataclass(frozen=True)
class StackEnvironment:
    """One stack of one project: everything it writes is under `home`.

    Attributes:
        project: the folder with `prefect.yaml` and `flows`.
        home: `.assetflow/dev` or `.assetflow/demo` in the project.
        port: of the Prefect server, on 127.0.0.1.
        pages_port: of assetflow's API and pages, on 127.0.0.1; a free one if none is given.
    """

    project: Path
    home: Path
    port: int
    pages_port: int = field(default_factory=lambda: choose_port(None))

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
        """Whether the flow runs share Spark's own local Connect server."""
        return self.variables["ASSETFLOW_SPARK_REMOTE"] == "local"

    @property
    def spark_server_file(self) -> Path:
        """Where Spark's own local Connect server is recorded."""
        return self.home / "spark" / "connect.json"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def variables(self) -> dict[str, str]:
        """What is different from the caller's environment: enough for another terminal to use this stack."""
        return {
            "PREFECT_HOME": str(self.home / "prefect"),
            "PREFECT_API_URL": self.api_url,
            "PREFECT_UI_URL": self.ui_url,
            "ASSETFLOW_HOME": str(self.home),
            "ASSETFLOW_UI_URL": self.pages_url,
            "FLOWS_LAKE": str(self.home / "lake"),
            **self._spark,
        }

    @property
    def _spark(self) -> dict[str, str]:
        """Which Spark the flows run on: the caller's choice, or the local one that they share."""
        chosen = {name: value for name, value in os.environ.items() if name.startswith("ASSETFLOW_SPARK_")}
        return {"ASSETFLOW_SPARK_REMOTE": "local"} | chosen

    @property
    def processes_env(self) -> dict[str, str]:
        """The environment of the stack's processes: of the caller's Prefect and assetflow only what is about Spark."""
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ASSETFLOW_"))
        }
        # The project's own commands (prefect, python) come first, whoever calls.
        path = os.pathsep.join((str(Path(sys.executable).parent), inherited.get("PATH", "")))
        quiet = {
            "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_API_HOST": "127.0.0.1",
            "PREFECT_SERVER_API_PORT": str(self.port),
            "PREFECT_WORKER_QUERY_SECONDS": "1",
            "PREFECT_CLI_PROMPT": "false",
            "PYTHONUNBUFFERED": "1",
        }
        return inherited | {"PATH": path} | quiet | self.variables

    @property
    def shell_file(self) -> Path:
        """A file that a shell can source to use this stack."""
        return self.home / "env"

    def write_shell_file(self) -> None:
        lines = [f"export {name}={shlex.quote(value)}" for name, value in self.variables.items()]
        lines.append(f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH")
        self.shell_file.write_text("\n".join(lines) + "\n")


def find_project(start: Path) -> Path:
    """The project that a command was called in: the folder, or one above it, with `prefect.yaml`.

    Raises:
        StackFailed: there is none.
    """
    for folder in (start, *start.parents):
        if (folder / "prefect.yaml").exists():
            return folder
    raise StackFailed(f"there is no prefect.yaml in {start} or above it", fix="Call this in the folder of your project")


def choose_port(asked: int | None) -> int:
    """The port that was asked for, or a free one.

    Raises:
        PortInUse: it is taken.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", asked or 0))
        except OSError as error:
            raise PortInUse(
                f"port {asked} is in use", fix="Stop what listens there, or choose another one with --port"
            ) from error
        return int(probe.getsockname()[1])
