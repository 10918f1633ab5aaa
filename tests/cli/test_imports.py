"""Commands start and end fast: they do not import what they do not need, nor look for garbage in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from assetflow.ledger import Ledger
from tests.ledger.making import NOW, A, deploy

DATABASE = ("sqlalchemy", "alembic", "httpx", "pydantic", "fastapi")
RUN = """
import json, sys
from assetflow.cli import run
status = run(sys.argv[1:])
print(json.dumps([status, list(sys.modules)]), file=sys.stderr)
"""
# Nobody listens there: a command that asks Prefect gets its answer at once.
NOWHERE = "http://127.0.0.1:9/api"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    with Ledger.open(home / "ledger.db") as ledger:
        deploy(ledger, A, "flow/one")
        ledger.writer.set_prefect_api_url(NOWHERE)
        ledger.writer.set_cursor("artifacts", NOW.isoformat())
    return home


def python(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"ASSETFLOW_HOME": str(home), "PREFECT_API_URL": NOWHERE, "ASSETFLOW_RECORDING_TIMEOUT": "0.1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, check=False)


def imported(home: Path, *arguments: str, ends: tuple[int, ...] = (0, 1)) -> set[str]:
    """The packages and modules that a command has imported at its end."""
    done = python(home, "-c", RUN, *arguments)
    status, names = json.loads(done.stderr.splitlines()[-1])
    assert status in ends, done.stderr
    return set(names)


@pytest.mark.parametrize("arguments", [("--help",), ("version",)], ids=" ".join)
def test_a_command_that_reads_nothing_imports_no_database(home: Path, arguments: tuple[str, ...]) -> None:
    assert not imported(home, *arguments) & {"prefect", "assetflow.core.values.assets", *DATABASE}


@pytest.mark.parametrize(
    "arguments",
    [
        ("events", "ls"),
        ("assets", "ls"),
        ("consumers", "ls"),
        ("decisions", "ls"),
        ("explain", "flow/one"),
        ("status",),
        ("emit", "s3://lake/a"),
    ],
    ids=" ".join,
)
def test_a_command_on_the_ledger_imports_neither_prefect_nor_alembic(home: Path, arguments: tuple[str, ...]) -> None:
    assert not imported(home, *arguments) & {"prefect", "alembic", "fastapi", "opentelemetry", "pyspark", "pandas"}
