"""What a run writes when its worker has died is lost, and the run goes on."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from assetflow.worker import client
from tests.environment.waiting import until
from tests.worker.conftest import SECONDS, Seam, is_running

pytestmark = pytest.mark.long

WRITES = """
    import os, sys, time
    from pathlib import Path
    from prefect.logging import get_logger
    from prefect.logging.configuration import setup_logging

    setup_logging()
    print("begun", flush=True)
    while not Path("gate").exists():
        time.sleep(0.01)
    # Far more than a pipe holds.
    for number in range(200):
        get_logger("flow").warning("said %s", number)
        print("x" * 2000, flush=True)
    Path("done").write_text(str(os.getpid()))
"""
# It reads what the run writes, as Prefect's does, and says how the run ends.
WORKER = """
import json, subprocess, sys
pipe = subprocess.PIPE
run = subprocess.Popen(json.loads(sys.argv[1]), stdout=pipe, stderr=pipe, text=True)
print(run.pid, run.stdout.readline().strip(), flush=True)
out, err = run.communicate()
print(run.returncode, len(out), err.count("said"), flush=True)
"""


@pytest.mark.parametrize("dies", [True, False], ids=["the worker dies", "the worker lives"])
def test_a_run_writes_whatever_becomes_of_its_worker(seam: Seam, dies: bool) -> None:
    start = [sys.executable, "-S", "-E", client.__file__, str(seam.place), seam.module("job", WRITES)]
    command = [sys.executable, "-c", WORKER, json.dumps(start)]
    with subprocess.Popen(command, cwd=seam.folder, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        run, begun = worker.stdout.readline().split()
        assert begun == "begun"
        if dies:
            worker.kill()
            worker.wait()
        (seam.folder / "gate").touch()
        said = worker.communicate(timeout=SECONDS)[0]
    assert said == ("" if dies else f"0 {200 * 2001} 200\n")
    until((seam.folder / "done").exists, seconds=SECONDS)
    until(lambda: not is_running(int(run)), seconds=SECONDS)
