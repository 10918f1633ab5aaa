"""Prefect's empty database on SQLite, kept for the next server: migrating one takes longer than the server's start."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

KEPT = Path(__file__).parents[2] / ".assetflow" / "tests"


def url_of(database: Path) -> str:
    """Return the address by which Prefect knows a file."""
    return f"sqlite+aiosqlite:///{database}"


def copy_empty_database(place: Path) -> None:
    """Copy an empty database of this Prefect's version to `place`; the first caller makes it."""
    KEPT.mkdir(parents=True, exist_ok=True)
    template = KEPT / f"prefect-{version('prefect')}.db"
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            _make(template)
    shutil.copy(template, place)


def _make(template: Path) -> None:
    with TemporaryDirectory(prefix="prefect-database-", dir=template.parent) as folder:
        made, whole = Path(folder) / "prefect.db", Path(folder) / "whole.db"
        settings = {"PREFECT_HOME": folder, "PREFECT_SERVER_DATABASE_CONNECTION_URL": url_of(made)}
        command = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
        done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        with closing(sqlite3.connect(made)) as database:
            # One file, with what is still in the log beside it.
            database.execute("VACUUM INTO ?", (str(whole),))
        whole.replace(template)
