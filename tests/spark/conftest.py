"""A classic Spark session for this process, and homes that nobody shares."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assetflow.core.values.assets import Asset
from assetflow.spark.data_files import AttemptId

FOLDER = Path(__file__).parent


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [each for each in os.environ if each.startswith("ASSETFLOW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ASSETFLOW_HOME", str(tmp_path / "a home"))
    return tmp_path / "a home"


@pytest.fixture
def spark(shared_spark: Any, own_home: Path) -> Any:  # noqa: ARG001 (the home after the session, or the test gets none)
    return shared_spark


@pytest.fixture
def orders(tmp_path: Path) -> Asset:
    return Asset(f"file://{tmp_path}/lake/orders")


@pytest.fixture
def as_attempt(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Let what follows be an attempt of a task run."""

    def become(task_run: str, number: int = 1) -> None:
        monkeypatch.setattr("assetflow.spark.publish.current_attempt", lambda: AttemptId(task_run, number))

    return become


@pytest.fixture
def child() -> Callable[..., Any]:
    """Run a script of this folder in a process of its own; its last line of output is JSON."""

    def run(script: str, *arguments: str, **environment: str) -> Any:
        done = subprocess.run(
            [sys.executable, str(FOLDER / script), *arguments],
            env={**os.environ, "PYTHONPATH": str(FOLDER.parents[1]), **environment},
            capture_output=True,
            text=True,
            timeout=350,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.strip().splitlines()[-1])

    return run
