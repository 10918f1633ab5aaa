"""A real Prefect server in a process of its own, for as long as a test needs it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from assetflow.stack import prefect_server
from tests.environment.asking_again import AskingAgain
from tests.environment.prefect_database import DATABASE, copy_empty_database, url_of
from tests.environment.waiting import until

START_SECONDS = 90.0
STOP_SECONDS = 20.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def send_what_prefect_holds_back() -> None:
    """Send the logs and events that Prefect in this process has collected, while its server still answers.

    Without it, Prefect tries for a minute and a half at the end of the process.
    """
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    for worker in (APILogWorker, EventsWorker):
        worker.drain_all(timeout=STOP_SECONDS)


class PrefectServer:
    """`prefect server start` on a free port, with SQLite in a folder.

    It can be stopped, killed and started again with the same data on the same port. As a context manager it starts
    on entry and stops on exit.

    Parameters:
        home: the server's PREFECT_HOME; its database and its log (`server.log`) lie there.
        settings: further Prefect settings, as environment variables: a database on PostgreSQL, messaging on Redis.
        port: the port on 127.0.0.1, a free one by default.
        auth_string: what the server asks of everybody, `user:password`; empty for nothing.
    """

    def __init__(
        self, home: Path, settings: Mapping[str, str] | None = None, port: int | None = None, *, auth_string: str = ""
    ) -> None:
        self.home = home
        self.port = port or free_port()
        self.api_url = f"http://127.0.0.1:{self.port}/api"
        self.auth_string = auth_string
        self._settings = dict(settings or {})
        if auth_string:
            self._settings["PREFECT_SERVER_API_AUTH_STRING"] = auth_string
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def env(self) -> dict[str, str]:
        """The environment for a process that talks to this server: a worker, a flow, the `prefect` command."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        return inherited | {
            "PREFECT_API_URL": self.api_url,
            "PREFECT_HOME": str(self.home),
            "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            **({"PREFECT_API_AUTH_STRING": self.auth_string} if self.auth_string else {}),
        }

    @property
    def headers(self) -> dict[str, str]:
        """What a request has to show."""
        if not self.auth_string:
            return {}
        return {"Authorization": f"Basic {b64encode(self.auth_string.encode()).decode()}"}

    def http(self) -> httpx.Client:
        """Return a client of the server's API, which asks again while the server is busy.

        It keeps no connection: a busy server may close one while the next request is on its way.
        """
        transport = AskingAgain(httpx.HTTPTransport(verify=False, limits=httpx.Limits(max_keepalive_connections=0)))
        return httpx.Client(base_url=self.api_url, headers=self.headers, timeout=60, transport=transport)

    @contextmanager
    def used_here(self) -> Iterator[None]:
        """Within the block, Prefect in this process talks to this server."""
        from tests.environment.prefect_settings import prefect_at

        with prefect_at(self.api_url):
            yield

    def start(self, seconds: float = START_SECONDS) -> None:
        """Start the server and return when its API answers, which it has to do within this time."""
        if self._process is not None:
            raise RuntimeError(f"the server on port {self.port} runs already")
        self.home.mkdir(parents=True, exist_ok=True)
        if DATABASE not in self._settings and not self._database_path.exists():
            copy_empty_database(self._database_path)
        command = [sys.executable, "-m", prefect_server.__name__, "--host", "127.0.0.1", "--port", str(self.port)]
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env=self.env | self._database() | self._settings,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_until_healthy(self._process, seconds)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End the server as an operator would; one that does not end in time is killed."""
        if self._process is None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the server at once (SIGKILL), with everything that it started."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def pause(self) -> None:
        """Freeze the server (SIGSTOP): connections stay open and nobody answers, until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def __enter__(self) -> PrefectServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _log_path(self) -> Path:
        return self.home / "server.log"

    @property
    def _database_path(self) -> Path:
        return self.home / "prefect.db"

    def _database(self) -> dict[str, str]:
        if DATABASE in self._settings:
            return {}
        return {
            DATABASE: url_of(self._database_path),
            # The copied database has them.
            "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
        }

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            raise RuntimeError(f"no server runs on port {self.port}")
        os.killpg(self._process.pid, number)

    def _wait_until_healthy(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        # One client: each loads all certificates, unless it is told not to, and takes longer than its request.
        with httpx.Client(timeout=2, verify=False) as client:
            until(lambda: process.poll() is not None or self._is_healthy(client), seconds=seconds, told=self._log_tail)
        if process.poll() is not None:
            raise RuntimeError(f"the Prefect server ended with {process.returncode}:\n{self._log_tail()}")

    def _is_healthy(self, client: httpx.Client) -> bool:
        with suppress(httpx.TransportError):
            return client.get(f"{self.api_url}/health").is_success
        return False

    def _log_tail(self) -> str:
        return self._log_path.read_text(errors="replace")[-3000:]
