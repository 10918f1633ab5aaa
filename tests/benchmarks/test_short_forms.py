"""Each benchmark runs in a short form, and prints one JSON document with the figures that it is there for."""

import json
import shutil
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.benchmark


def run(name: str, *options: str, timeout: float = 170) -> dict[str, Any]:
    """What a benchmark prints."""
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.postgres
def test_engine() -> None:
    found = run("engine", "--thousand=60", "--many=120", "--few=20", "--rounds=1")
    names = {"events_per_second_1k", "events_per_second_10k", "cpu_ms_per_event_1k", "cost_ratio_10k_to_100"}
    assert all(found[name] > 0 for name in (*names, "memory_mb", "postgres_ratio"))
    assert [each["decisions"] for each in found["sizes"]] == [60, 60, 120, 120, 60]


def test_time() -> None:
    found = run("time", "--consumers=40", "--events=40", "--openings=2", "--updates=20")
    assert all(found[name] > 0 for name in ("cpu_ms_per_event_10k", "instants_per_second", "catch_up_seconds_7d"))


def test_replay() -> None:
    found = run("replay", "--events=1000", "--consumers=10", "--differ=5")
    assert all(found[name] > 0 for name in ("seconds", "cpu_seconds", "megabytes", "runs_before"))


def test_second_writer() -> None:
    found = run("second_writer", "--consumers=50", "--updates=40", "--rounds=1")
    assert found["second_writer_ratio"] > 0


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind, which is not here")
@pytest.mark.timeout(960)
def test_instructions() -> None:
    found = run("instructions", "--many=30", "--few=10", timeout=900)
    assert found["instructions_ratio_10k_to_100"] > 0
    assert all(each["instructions"] > 10_000 for each in found["sizes"])


@pytest.mark.prefect
def test_latency() -> None:
    found = run("latency", "--samples=2", "--burst=3")
    assert all(found[name] > 0 for name in ("latency_ratio_median", "latency_ratio_p95", "burst_ratio"))


@pytest.mark.prefect
@pytest.mark.spark
@pytest.mark.timeout(960)
def test_chain() -> None:
    found = run("chain", "--samples=1", "--burst=2", "--spark-samples=1", timeout=900)
    figures = ("update_to_code", "update_to_code_p95", "hop", "hop_p95", "spark_update_to_data")
    assert all(found[f"{name}_seconds"] > 0 for name in figures)
    ratios = ("update_to_code", "hop", "cpu_seconds_per_run", "runs_per_minute")
    assert all(found[f"{name}_ratio"] > 0 for name in ratios)
    assert [each["worker"] for each in found["workers"]] == ["warm", "process_1s", "process_defaults"]


@pytest.mark.prefect
@pytest.mark.spark
@pytest.mark.timeout(960)
def test_small_tables() -> None:
    found = run("small_tables", "--tables=2", "--samples=1", timeout=900)
    assert found["tables"] == 2
    assert all(found[name] > 0 for name in ("small_tables_ratio", "seconds", "pipeline_seconds"))


@pytest.mark.prefect
def test_year() -> None:
    found = run("year", "--events", "400", "2000", "--assets=60", "--updates=20", "--samples=1")
    few, many, year = found["sizes"]
    assert 0 < few["megabytes"] < many["megabytes"] < year["megabytes"]
    assert found["start_after_an_hour_seconds"] > 0


def test_pages() -> None:
    small = ("--size=60", "--events=400", "--queued=1500", "--samples=2")
    found = run("pages", *small, "--most=20000")
    assert found["too_slow"] == ""
    command = [sys.executable, "-m", "benchmarks.pages", *small, "--most=0", "--only=backfills"]
    assert subprocess.run(command, capture_output=True, timeout=170, check=False).returncode == 1
    assert len(found["pages"]) > 20
    assert all(each["max_ms"] > 0 for each in found["pages"])


@pytest.mark.prefect
def test_growth() -> None:
    sizes = ("--consumers", "20", "40", "--events=1000", "--deployments", "5", "--recordings=40", "--samples=2")
    found = run("growth", *sizes)
    assert found["ledger_events"] == 1000
    assert found["start_seconds"] > 0


def test_freshness() -> None:
    sizes = ("--flows=60", "--hourly=10", "--keys=20", "--readers=4", "--updates=8", "--items=40", "--owed=40")
    found = run("freshness", *sizes)
    figures = ("judge_ms_median", "judge_ms_worst", "judge_ms_per_reader", "status_ms_100k", "owed_ms_longest")
    assert all(found[name] > 0 for name in figures)
    assert found["statements_ratio"] > 0


@pytest.mark.spark
def test_checks() -> None:
    found = run("checks", "--rows=20000", "--rounds=1")
    assert all(found[f"{name}_cost_ratio"] > 0 for name in ("check", "values", "function", "unique"))
