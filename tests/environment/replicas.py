"""Prefect as `deployments/replicas` runs it: two servers on Postgres, messages through Redis, and a password."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from tests.environment.examples import commands, env_file, with_our_python
from tests.environment.postgres import new_database
from tests.environment.prefect_server import PrefectServer

AUTH_STRING = "admin:with a secret"
DATABASES = range(1, 16)


@contextmanager
def replicas(home: Path) -> Iterator[list[PrefectServer]]:
    """Two servers of one Prefect, which share the work of its background services."""
    with new_database() as database, empty_redis() as messages:
        settings = env_file("replicas/prefect-server.env") | {
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": database.replace("+psycopg", "+asyncpg"),
            "PREFECT_SERVER_DOCKET_URL": messages,
            "PREFECT_REDIS_MESSAGING_URL": messages,
        }
        first = PrefectServer(home / "first", settings, auth_string=AUTH_STRING)
        make_tables(first.env | settings)
        with first, PrefectServer(home / "second", settings, auth_string=AUTH_STRING) as second:
            yield [first, second]


def make_tables(env: Mapping[str, str]) -> None:
    """Prefect's tables, made before several servers start at once."""
    command = ["/bin/sh", "-ec", commands("replicas")[0]]
    done = subprocess.run(command, env=with_our_python(env), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@contextmanager
def empty_redis() -> Iterator[str]:
    """The address of an empty database of the Redis on this machine, emptied at the end."""
    for number in DATABASES:
        database: Any = redis.Redis(db=number)
        # The key says that it is taken.
        if database.dbsize() == 0 and database.set("assetflow-test", "1", nx=True):
            try:
                yield f"redis://127.0.0.1:6379/{number}"
            finally:
                database.flushdb()
                database.close()
            return
        database.close()
    raise RuntimeError("no database of this machine's Redis is empty")
