"""The command line as a process: its log, its completion, and what happens when nobody reads on."""

import json
import logging
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from assetflow.cli.processes import log_to_stderr
from assetflow.ledger import Ledger
from tests.cli.shop import ORDERS, update


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
        [sys.executable, "-c", DELIVERING], env=own, capture_output=True, text=True, check=False, timeout=180
    )
    assert (done.returncode, done.stderr) == (0, "")
    with sqlite3.connect(tmp_path / "prefect" / "prefect.db") as database:
        assert database.execute("SELECT count(*) FROM artifact WHERE type = 'assetflow-update'").fetchone() == (1,)
    database.close()


def test_lines_for_machines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_LOG_FORMAT", "json")
    log_to_stderr()
    logger = logging.getLogger("assetflow.evaluator")
    logger.info("started run %s\nin two lines", "x", extra={"decision": "d", "recordings": ["r"]})
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("failed")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "level": "INFO",
        "logger": "assetflow.evaluator",
        "message": "started run x\nin two lines",
        "decision": "d",
        "recordings": ["r"],
    }
    assert "ValueError: broken" in second["traceback"]


@pytest.mark.parametrize("kind", ["text", "json"])
def test_passwords_are_not_logged_and_control_text_is_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("ASSETFLOW_LOG_FORMAT", kind)
    log_to_stderr()
    logger = logging.getLogger("assetflow.evaluator")
    try:
        raise ValueError("no answer from http://u:secretpw@host/api")
    except ValueError:
        logger.exception("asking http://u:secretpw@host/api failed")
    logger.info("deployed %s", "\u202eevil\u2066\u200b\x1b[2J")
    told = capsys.readouterr().err
    assert told.replace("\n", "").isprintable()
    assert "u202eevil" in told
    assert "secretpw" not in told
    assert "asking http://host/api failed" in told
