"""The command line as a process: what it imports, and what happens when nobody reads on."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from assetflow.ledger import Ledger
from tests.cli.shop import ORDERS, update

IMPORTED = """
import sys
from assetflow.cli import run
code = run(sys.argv[1:])
heavy = [name for name in ("prefect", "pyspark", "alembic", "sqlalchemy", "httpx") if name in sys.modules]
sys.stderr.write(" ".join(heavy))
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("command", "heavy"),
    [
        ("version", ""),
        ("--help", ""),
        ("consumers --help", "sqlalchemy"),
        ("events ls", "sqlalchemy"),
        ("consumers ls", "sqlalchemy"),
        ("decisions ls", "sqlalchemy"),
        ("assets ls", "sqlalchemy"),
        ("queue ls", "sqlalchemy"),
    ],
)
@pytest.mark.usefixtures("ledger")
def test_commands_import_only_what_they_need(command: str, heavy: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *command.split()], capture_output=True, text=True, check=False, timeout=120
    )

    assert (done.returncode, done.stderr) == (0, heavy)


def test_a_closed_pipe_is_no_traceback(ledger: Ledger, home: Path) -> None:
    for minute in range(1, 40):
        update(ledger, ORDERS, minute, extra={"x": "y" * 5_000})
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "assetflow", "events", "ls", "--json"],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
        )
    finally:
        os.close(write)

    assert (done.returncode, done.stderr) == (141, "")
    assert not (home / "errors").exists()


DELIVERING = """
from datetime import UTC, datetime
from uuid import uuid4
from assetflow.authoring.recording import deliver
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording
deliver(Recording(uuid4(), (AssetEvent(uuid4(), Asset("s3://lake/orders"), datetime.now(UTC), Origin("task")),)))
"""


@pytest.mark.long
@pytest.mark.prefect
def test_without_a_server_an_update_is_kept_by_the_one_that_prefect_starts(tmp_path: Path) -> None:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ASSETFLOW_"))}
    own |= {"HOME": str(tmp_path), "PREFECT_HOME": str(tmp_path / "prefect"), "ASSETFLOW_HOME": str(tmp_path / "home")}
    # On any machine less than a new database takes, as Prefect's own 20 s are on a slow one.
    own["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", DELIVERING],
        env=own,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )

    assert (done.returncode, done.stderr) == (0, "")
    with sqlite3.connect(tmp_path / "prefect" / "prefect.db") as database:
        assert database.execute("SELECT count(*) FROM artifact WHERE type = 'assetflow-update'").fetchone() == (1,)
    database.close()
