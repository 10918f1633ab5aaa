"""Prefect's empty database on SQLite, kept for the next server: making one takes longer than the server's start."""

import fcntl
import shutil
import sqlite3
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

# The setting that names a server's database.
DATABASE = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
# The migrations write to the disk again and again: on a busy machine for minutes.
FIRST_START_SECONDS = 600.0
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
    # This one starts from nothing; all others start from what it makes.
    from tests.environment.prefect_server import PrefectServer

    with TemporaryDirectory(prefix="prefect-database-", dir=template.parent) as folder:
        made, whole = Path(folder) / "made.db", Path(folder) / "whole.db"
        server = PrefectServer(Path(folder), {DATABASE: url_of(made)})
        # Before it answers, it makes its tables and registers its block types.
        server.start(FIRST_START_SECONDS)
        server.stop()
        with closing(sqlite3.connect(made)) as database:
            # One file, with what is still in the log beside it.
            database.execute("VACUUM INTO ?", (str(whole),))
        whole.replace(template)
