"""`deployments/replicas` as it stands there, its SQL, settings and commands, on this machine's Postgres and Redis."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
import yaml

from assetflow.ledger import Reader
from tests.environment.examples import DEPLOYMENTS, answers, commands, env_file, plain_environment, running
from tests.environment.postgres import on_server
from tests.environment.prefect_server import free_port
from tests.environment.replicas import empty_redis, make_tables
from tests.environment.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.postgres, pytest.mark.redis, pytest.mark.timeout(400)]

REPLICAS = DEPLOYMENTS / "replicas"
CONTAINERS = yaml.safe_load((REPLICAS / "compose.yaml").read_text())["services"]
NAMES = ("prefect", "assetflow")


@dataclass(frozen=True)
class Example:
    """The example's settings with this machine's addresses; roles and databases have names of their own."""

    mark: str
    redis: str
    ports: tuple[int, int]

    def settings(self, place: str) -> dict[str, str]:
        return {name: self._here(value) for name, value in env_file(f"replicas/{place}").items()}

    def _here(self, value: str) -> str:
        value = re.sub(r"//(\w+):(.+)@postgres:5432/(\w+)", rf"//\1{self.mark}:\2@127.0.0.1:5432/\3{self.mark}", value)
        return value.replace("redis://redis:6379/0", self.redis).replace("prefect:4200", f"127.0.0.1:{self.ports[0]}")


@pytest.fixture
def example() -> Iterator[Example]:
    mark = f"_test_{uuid4().hex[:8]}"
    with empty_redis() as redis, databases(mark):
        yield Example(mark, redis, (free_port(), free_port()))


@contextmanager
def databases(mark: str) -> Iterator[None]:
    """The roles and databases of `databases.sql`, their names with a mark."""
    statements = re.sub(r"\b(prefect|assetflow)\b", rf"\1{mark}", (REPLICAS / "databases.sql").read_text())
    try:
        on_server(*filter(None, map(str.strip, statements.split(";"))))
        yield
    finally:
        for name in NAMES:
            on_server(f"DROP DATABASE IF EXISTS {name}{mark} WITH (FORCE)", f"DROP ROLE IF EXISTS {name}{mark}")


def test_two_servers_two_evaluators_and_a_worker(example: Example, tmp_path: Path) -> None:
    env = plain_environment() | {"HOME": str(tmp_path), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    servers, ours = env | example.settings("prefect-server.env"), env | example.settings("assetflow.env")
    _, start, *_ = commands("replicas")
    make_tables(servers)
    with ExitStack() as stack:
        for port in example.ports:
            at = {"PREFECT_SERVER_API_PORT": str(port), "PREFECT_HOME": str(tmp_path / str(port))}
            stack.enter_context(running(f"exec {start}", servers | at, tmp_path / f"{port}.log"))
            until(lambda port=port: answers(f"http://127.0.0.1:{port}/api/health"))

        # The containers start together: whichever comes first makes the tables.
        stack.enter_context(running(f"exec {contained('watcher')}", ours, tmp_path / "watcher.log"))
        evaluators: dict[int, subprocess.Popen[bytes]] = {}
        for port in (free_port(), free_port()):
            script = f"exec {contained('assetflow')} --port {port}"
            evaluators[port] = stack.enter_context(running(script, ours, tmp_path / f"{port}.log"))
        for port in evaluators:
            until(lambda port=port: is_ready(port, ours))
        until(lambda: "ready: the watchers" in (tmp_path / "watcher.log").read_text())

        with running(f"exec {contained('worker')}", ours, tmp_path / "worker.log"):
            until(lambda: pool_is_there(ours))

        first = leader(ours)
        (killed,) = (each for each in evaluators.values() if each.pid == first)
        ((port, other),) = ((port, each) for port, each in evaluators.items() if each is not killed)
        killed.kill()
        until(lambda: leader(ours) == other.pid and is_ready(port, ours))


def contained(service: str) -> str:
    """What a container runs, for this machine only."""
    return " ".join(CONTAINERS[service]["command"]).replace("0.0.0.0", "127.0.0.1")


def is_ready(port: int, env: dict[str, str]) -> bool:
    return answers(f"http://127.0.0.1:{port}/ready", Authorization=f"Bearer {env['ASSETFLOW_API_KEY']}")


def pool_is_there(env: dict[str, str]) -> bool:
    command = ["prefect", "work-pool", "inspect", "assetflow"]
    return subprocess.run(command, env=env, capture_output=True, check=False).returncode == 0


def leader(env: dict[str, str]) -> int | None:
    """The process that evaluates."""
    with Reader.open(env["ASSETFLOW_DATABASE_URL"]) as reader:
        found = reader.evaluators()
        return found.lease.holder.pid if found.alive and found.lease is not None else None
