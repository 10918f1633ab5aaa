"""The tests of a file, and those on one session of Spark, run in one process, seen from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
TWENTY = """
import os
from pathlib import Path

import pytest

@pytest.mark.parametrize("number", range(20))
def test_note(number):
    note = Path(os.environ["NOTES"]) / f"{Path(__file__).stem}-{os.environ['PYTEST_XDIST_WORKER']}"
    note.touch()
"""


def test_one_process_runs_the_tests_on_one_session_of_spark(tmp_path: Path) -> None:
    (tmp_path / "tests" / "spark").mkdir(parents=True)
    (tmp_path / "tests" / "spark" / "test_session.py").write_text(TWENTY)
    (tmp_path / "tests" / "spark" / "test_task.py").write_text(TWENTY)
    for name in ("test_other", "test_last"):
        (tmp_path / "tests" / f"{name}.py").write_text(TWENTY)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    command += ["-n", "2", "--dist", "loadgroup", str(tmp_path)]
    environment = os.environ | {"NOTES": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "80 passed" in done.stdout

    notes = {note.name.partition("-gw")[::2] for note in tmp_path.glob("test_*-gw*")}
    assert sorted(stem for stem, _ in notes) == ["test_last", "test_other", "test_session", "test_task"]
    assert len({worker for stem, worker in notes if stem in ("test_session", "test_task")}) == 1
