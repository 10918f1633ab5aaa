"""Check that a Spark server answers at an address.

PySpark waits for minutes for a server that is not there, or that does not expect TLS. So assetflow first tries the
address for a few seconds.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from importlib import import_module
from threading import Thread
from urllib.parse import urlsplit

from assetflow.errors import SparkUnreachable

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
