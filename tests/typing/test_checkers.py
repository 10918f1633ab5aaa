"""Both type checkers, run strictly over a user's files: what is right passes, each mistake is found in its line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REFUSED = HERE / "refused.py"

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def expected() -> set[int]:
    """The lines of `refused.py` that say that they are wrong."""
    lines = REFUSED.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# error")}


def run(*command: str) -> str:
    called = [sys.executable, "-m", *command]
    return subprocess.run(called, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def test_mypy_finds_each_mistake() -> None:
    found = [json.loads(line) for line in run("mypy", "--output=json", str(REFUSED)).splitlines() if line[:1] == "{"]
    assert {each["line"] for each in found if each["severity"] == "error"} == expected()


def test_pyright_finds_each_mistake_and_nothing_in_what_is_right() -> None:
    # What PySpark, PyArrow and Prefect leave without types is theirs: the configuration does not ask for it.
    found = json.loads(run("pyright", "--outputjson", "-p", str(HERE / "pyrightconfig.json")))["generalDiagnostics"]
    lines = {(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in found}
    assert lines == {(REFUSED.name, line) for line in expected()}
