"""Spark's own Connect server on this machine: one for each `ASSETFLOW_HOME`, started when it is first needed.

PySpark can start one too, but through shell scripts that fail if a path has a space in it. This module starts the
server by its arguments, in a process session of its own, so that the end of a flow run does not end the server.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from tempfile import NamedTemporaryFile
from threading import Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from assetflow.errors import SparkUnreachable
from assetflow.settings import get_settings, make_private_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SERVER_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
# The environment variables that would make the server take itself for a client.
_CLIENT_VARIABLES = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
# The shell prints the pid and ends at once, so that the server is not a child of this process.
_IN_BACKGROUND = 'log=$1; shift; "$@" >>"$log" 2>&1 </dev/null & echo $!'

_SECONDS_TO_START = 120.0
_SECONDS_TO_STOP = 20.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that was started, as recorded in `discovery_file()`, which only its owner can read.

    Parameters:
        pid: the id of its process.
        port: its port on 127.0.0.1.
        token: the token that clients have to send.
        version: its version of Spark.
    """

    pid: int
    port: int
    token: str
    version: str

    @classmethod
    def recorded(cls, file: Path | None = None) -> LocalServer | None:
        """Return the server in this file, by default the one that was started last here, or `None`.

        It may have ended meanwhile.
        """
        try:
            return cls(**json.loads((file or discovery_file()).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def record(self) -> None:
        descriptor = os.open(discovery_file(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(self), file)

    def runs(self) -> bool:
        """Return True if a process has its pid, which may be another process by now."""
        command = ["ps", "-ww", "-p", str(self.pid), "-o", "stat=", "-o", "command="]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return _SERVER_CLASS in shown and not shown.lstrip().startswith("Z")

    def answers(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(0.5)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> bool:
        """Stop the server, wait until it has ended, and return True if it was running."""
        ran = self.runs()
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = monotonic() + _SECONDS_TO_STOP
            with suppress(ProcessLookupError):
                if self.runs():
                    os.kill(self.pid, number)
            while self.runs() and monotonic() < deadline:
                sleep(_POLL_SECONDS)
        return ran


def discovery_file() -> Path:
    """Return the file that records the Connect server of this `ASSETFLOW_HOME`: each home has a server of its own."""
    return get_settings().home / "spark" / "connect.json"


def own_local_server(master: str, conf: Mapping[str, str]) -> str:
    """Return the address of the Connect server of this `ASSETFLOW_HOME`. Start it if none is running.

    The token for the server is then in the environment of this process.

    Raises:
        SparkUnreachable: the server did not start.
    """
    from pyspark.version import __version__

    with _alone():
        server = LocalServer.recorded()
        if server is not None and server.version != __version__:
            server.stop()
        if server is None or not server.runs():
            server = _start(master, conf, __version__)
        else:
            _wait_until_ready(server)
    os.environ[_TOKEN] = server.token
    # Use this name: with any other, a client that has a token uses TLS.
    return f"sc://localhost:{server.port}"


def stop_recorded_server(file: Path | None = None) -> bool:
    """Stop the Connect server that a discovery file names, if it is running, and no other.

    Parameters:
        file: the discovery file; by default that of this `ASSETFLOW_HOME`.
    """
    file = file or discovery_file()
    server = LocalServer.recorded(file)
    if server is None:
        return False
    stopped = server.stop()
    file.unlink(missing_ok=True)
    return stopped


@contextmanager
def _alone() -> Generator[None]:
    """Let one process at a time look for the server and start it; the others wait, and then find it."""
    make_private_folder(get_settings().home)
    make_private_folder(discovery_file().parent)
    with discovery_file().with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start(master: str, conf: Mapping[str, str], version: str) -> LocalServer:
    token, port = token_hex(16), _free_port()
    with _properties(conf) as properties:
        server = LocalServer(_run(_command(master, port, properties), token), port, token, version)
        # Record the server before it is ready: if this process is killed, the next one finds it and can stop it.
        server.record()
        _wait_until_ready(server)
    return server


def _wait_until_ready(server: LocalServer) -> None:
    deadline = monotonic() + _SECONDS_TO_START
    while not server.answers():
        has_ended = not server.runs()
        if has_ended or monotonic() > deadline:
            why = _last_words() if has_ended else f"it did not answer within {_SECONDS_TO_START:.0f} s"
            server.stop()
            discovery_file().unlink()
            raise SparkUnreachable(
                f"Spark's local Connect server did not start: {why}",
                where=str(_log_file()),
                fix="Read its log, or unset ASSETFLOW_SPARK_REMOTE to use a classic session",
            )
        sleep(_POLL_SECONDS)


def _command(master: str, port: int, properties: str) -> list[str]:
    from pyspark.find_spark_home import _find_spark_home  # pyright: ignore[reportPrivateUsage]

    conf = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": port}
    return [
        str(Path(_find_spark_home(), "bin", "spark-class")),
        "org.apache.spark.deploy.SparkSubmit",
        *("--class", _SERVER_CLASS, "--name", "assetflow", "--master", master, "--properties-file", properties),
        *(part for key, value in conf.items() for part in ("--conf", f"{key}={value}")),
    ]


def _run(command: list[str], token: str) -> int:
    environment = {name: value for name, value in os.environ.items() if name not in _CLIENT_VARIABLES}
    started = subprocess.run(
        ["/bin/sh", "-c", _IN_BACKGROUND, "sh", str(_log_file()), *command],
        # The server itself is not a client of a Connect server. The token must not show in a list of processes.
        env=environment | {"SPARK_CONNECT_MODE": "0", _TOKEN: token},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        start_new_session=True,
    )
    return int(started.stdout)


@contextmanager
def _properties(conf: Mapping[str, str]) -> Generator[str]:
    """Write the configuration to a file that only this user can read, and delete it when the server has started."""
    with NamedTemporaryFile("w", dir=discovery_file().parent, suffix=".properties") as file:
        for key, value in conf.items():
            escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
            file.write(f"{key}={escaped}\n")
        file.flush()
        yield file.name


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _log_file() -> Path:
    return discovery_file().with_name("connect.log")


def _last_words() -> str:
    lines = [line for line in _log_file().read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "its log is empty"


def give_up_early(session: SparkSession) -> None:
    """Limit a session's retries to seconds: a local server that is gone does not come back.

    By default PySpark retries for ten minutes, also at the exit of a process that has finished its work.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=6, max_backoff=1000)])


CONNECT_PORT = 15002
MASTER_PORT = 7077
NO_ANSWER = "no answer in time"
_SECONDS_FOR_PORT = 2.0
_SECONDS_FOR_CHANNEL = 2.5


def probe_master(url: str) -> None:
    """Check that at least one master listens at `spark://host:port[,host:port]`.

    Raises:
        SparkUnreachable: no master listens.
    """
    problems: list[str] = []
    for place in url.removeprefix("spark://").split(","):
        address = urlsplit(f"//{place}")
        host, port = address.hostname or "", address.port or MASTER_PORT
        problem = in_time(partial(_open_port, host, port), _SECONDS_FOR_PORT)
        if not problem:
            return
        problems.append(f"{host}:{port}: {problem}")
    raise SparkUnreachable(
        f"no Spark master answers ({'; '.join(problems)})",
        where=url,
        fix="Check that the master runs, and ASSETFLOW_SPARK_MASTER or the task's master=",
    )


def probe_connect(url: str) -> None:
    """Check within 5 seconds that a Connect server answers at `sc://host:port`.

    Raises:
        SparkUnreachable: nothing listens there, the name is unknown, or the server there is not a Connect server.
    """
    # Import it before the time limit begins: on a busy machine the first import takes seconds.
    import_module("pyspark.sql.connect.client")
    address = urlsplit(url)
    host, port = address.hostname or "", address.port or CONNECT_PORT
    problem = in_time(lambda: _open_port(host, port), _SECONDS_FOR_PORT) or in_time(
        lambda: _open_channel(url), _SECONDS_FOR_CHANNEL
    )
    if problem:
        raise SparkUnreachable(
            f"no Spark Connect server answers at {host}:{port} ({problem})",
            where=f"sc://{host}:{port}",
            fix=(
                "Check that the server runs, and host and port; with a token, a local server must be called "
                "localhost (any other name means TLS, and then the server needs it too)"
            ),
        )


def _open_port(host: str, port: int) -> None:
    socket.create_connection((host, port), timeout=_SECONDS_FOR_PORT).close()


def _open_channel(url: str) -> None:
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    channel = DefaultChannelBuilder(url).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=_SECONDS_FOR_CHANNEL)
    except grpc.FutureTimeoutError:
        raise TimeoutError("something listens there, but it does not speak Spark Connect") from None
    finally:
        channel.close()


def in_time(attempt: Callable[[], object], seconds: float) -> str:
    """Run a step that may block in the resolver or the network. Return the problem, or an empty text."""
    problems: list[str] = [NO_ANSWER]

    def run() -> None:
        try:
            attempt()
            problems[0] = ""
        except Exception as error:
            problems[0] = str(error) or type(error).__name__

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return problems[0]
