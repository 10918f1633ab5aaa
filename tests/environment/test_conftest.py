"""What tests/conftest.py promises, seen from outside: each test runs pytest with it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]

SKIPS = """
import pytest

def test_needs():
    pytest.skip({reason!r})
"""

LEAVES_A_CHILD = """
import subprocess, sys

def test_leaves_a_child():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
"""

COMPUTES = """
import time
import pytest

def busy():
    end = time.process_time() + 3.2
    while time.process_time() < end:
        pass

def test_computes():
    busy()

@pytest.mark.long
def test_may_compute():
    busy()
"""


def run_pytest(folder: Path, source: str, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_inner.py").write_text(source)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, cwd=ROOT, env=os.environ | env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("ci", "reason", "passes"),
    [("true", "needs Chromium", False), ("", "needs Chromium", True), ("true", "only on Windows", True)],
)
def test_in_ci_a_test_that_misses_something_fails(tmp_path: Path, ci: str, reason: str, passes: bool) -> None:
    result = run_pytest(tmp_path, SKIPS.format(reason=reason), CI=ci)
    assert (result.returncode == 0) is passes, result.stdout
    if not passes:
        assert "needs Chromium, which this CI machine does not have" in result.stdout


def test_a_process_left_running_fails_the_session(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, LEAVES_A_CHILD)
    assert result.returncode != 0
    left = re.search(r"still running after the tests:\s+E?\s*(\d+) ", result.stdout)
    assert left, result.stdout
    os.kill(int(left[1]), signal.SIGKILL)


def test_a_test_that_computes_for_too_long_fails_unless_it_says_so(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, COMPUTES)
    assert "1 failed, 1 passed" in result.stdout
    assert re.search(r"The test took 3\.\d s of CPU time", result.stdout), result.stdout
