"""Prefect's empty database on SQLite, kept for the next server: making one takes longer than the server's start."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from assetflow.stack.environment import choose_port
from tests.environment.waiting import until

# The migrations write to the disk again and again: on a busy machine for minutes.
START_SECONDS = 600.0
STOP_SECONDS = 60.0
KEPT = Path(__file__).parents[2] / ".assetflow" / "tests"


def url_of(database: Path) -> str:
    """Return the address by which Prefect knows a file."""
    return f"sqlite+aiosqlite:///{database}"


def copy_empty_database(place: Path) -> None:
    """Copy to `place` what this version of Prefect's server makes at its first start; the first caller has it made."""
    KEPT.mkdir(parents=True, exist_ok=True)
    template = KEPT / f"prefect-{version('prefect')}.db"
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            _make(template)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(template, place)


def spare_first_start(home: Path) -> None:
    """Give a stack with its files in `home` the database that its Prefect server would make at its first start."""
    copy_empty_database(home / "prefect" / "prefect.db")


def _make(template: Path) -> None:
    with TemporaryDirectory(prefix="prefect-database-", dir=template.parent) as folder:
        made, whole = Path(folder) / "prefect.db", Path(folder) / "whole.db"
        _start_once(Path(folder), {"PREFECT_HOME": folder, "PREFECT_SERVER_DATABASE_CONNECTION_URL": url_of(made)})
        with closing(sqlite3.connect(made)) as database:
            # One file, with what is still in the log beside it.
            database.execute("VACUUM INTO ?", (str(whole),))
        whole.replace(template)


def _start_once(folder: Path, settings: dict[str, str]) -> None:
    """Let a server make its tables and register its block types, which it does before it answers."""
    port, log = choose_port(None), folder / "server.log"
    command = [sys.executable, "-m", "prefect", "server", "start", "--port", str(port)]
    with log.open("wb") as output:
        server = subprocess.Popen(command, env=os.environ | settings, stdout=output, stderr=output)
    try:
        until(lambda: server.poll() is not None or _answers(port), seconds=START_SECONDS, told=log.read_text)
        assert server.poll() is None, log.read_text()
    finally:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(STOP_SECONDS)
        server.kill()
        server.wait()


def _answers(port: int) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/api/health", timeout=2, verify=False).is_success
    return False
