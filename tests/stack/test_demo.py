"""The whole demo, as `make demo` runs it: real data, real Spark, checked to the last event, and nothing left."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment.examples import ROOT
from tests.environment.processes import left_running

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.spark, pytest.mark.timeout(900)]

EXPECTED = {
    "orders-consumer/shop": 1,
    "combined-consumer/shop": 1,
    "carrier-report/lake": 1,
    "delay-by-weather/lake": 1,
    "fleet-report/lake": 1,
    "board/lake": 2,
    "daily-delays/lake": 3,
    "monthly-report/lake": 1,
    "delays/lake": 3,
    "delays-by-hour/lake": 3,
    "delays-by-day/lake": 3,
    "delay-summary/lake": 1,
}
FLIGHTS = 336_776


def test_the_demo(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "flows", tmp_path / "flows", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "prefect.yaml", tmp_path)
    before = {process.pid for process in left_running(wait=0)}
    command = [sys.executable, "-m", "assetflow", "demo", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    home = tmp_path / ".assetflow" / "demo"
    assert done.returncode == 0, done.stderr + what_went_wrong(done.stdout, home / "logs")
    summary = json.loads(done.stdout)
    assert summary == json.loads((home / "summary.json").read_text())
    assert summary["ok"]
    assert summary["results"]["ok"]
    assert EXPECTED.items() <= {each["consumer"]: each["runs"] for each in summary["consumers"]}.items()
    assert all(each["ok"] and each["completed"] == each["runs"] for each in summary["consumers"])
    (flights,) = [event for event in summary["events"] if event["asset"] == "flights"]
    assert flights["metrics"]["rows"] == FLIGHTS
    (held_back,) = summary["held_back"]
    assert held_back.startswith("arrivals: held back by no_nulls(arr_delay): found 1,175, wanted no nulls in arr_delay")
    assert {process.pid for process in left_running()} <= before
    # What a user would stumble over. Prefect's own server may complain of a busy SQLite.
    for log in ("evaluator.log", "worker.log"):
        told = (home / "logs" / log).read_text()
        assert all("CheckFailed" in trace for trace in told.split("Traceback")[1:]), told
        assert "Warning:" not in told, told


def what_went_wrong(printed: str, logs: Path) -> str:
    """The consumers, runs and results that are not as they should be, and the end of each log."""
    ends = "".join(f"\n== {log.name}\n{log.read_text()[-4000:]}" for log in sorted(logs.glob("*.log")))
    if not printed:
        return ends
    summary = json.loads(printed)
    wrong = [each for each in summary["consumers"] if not each["ok"]]
    wrong += [run for run in summary["runs"] if run["state"] != "Completed"]
    return json.dumps([*wrong, summary["results"]], indent=2) + ends
