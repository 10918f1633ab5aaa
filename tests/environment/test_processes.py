"""The check at the end of a session finds what is left, orphans too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.environment.processes import left_running

SLEEP = "import time; time.sleep(60)"


def pids() -> set[int]:
    return {process.pid for process in left_running(wait=0)}


def test_a_child_is_found_until_it_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEP]) as child:
        assert child.pid in pids()
        child.kill()
        child.wait()
    assert child.pid not in pids()


def test_a_child_without_the_mark_is_found() -> None:
    with subprocess.Popen([sys.executable, "-c", SLEEP], env={}) as child:
        assert child.pid in pids()
        child.kill()


def test_an_orphan_is_found() -> None:
    parent = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {SLEEP!r}], stdout=2).pid)"
    answer = subprocess.run([sys.executable, "-c", parent], stdout=subprocess.PIPE, check=True, start_new_session=True)
    orphan = int(answer.stdout)
    try:
        assert orphan in pids()
    finally:
        os.kill(orphan, signal.SIGKILL)
