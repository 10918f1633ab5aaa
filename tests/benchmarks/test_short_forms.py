"""Each benchmark runs in a short form, and prints one JSON document with the figures that it is there for."""

import json
import shutil
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(960)]

SPARK = [pytest.mark.prefect, pytest.mark.spark]
VALGRIND = pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind, which is not here")
# Each with its options and the figures that are above zero.
BENCHMARKS = [
    pytest.param(
        "engine --thousand=60 --many=120 --few=20 --rounds=1",
        "events_per_second_1k events_per_second_10k cpu_ms_per_event_1k cost_ratio_10k_to_100 memory_mb postgres_ratio",
        marks=pytest.mark.postgres,
    ),
    (
        "time --consumers=40 --events=40 --openings=2 --updates=20",
        "cpu_ms_per_event_10k instants_per_second catch_up_seconds_7d",
    ),
    ("replay --events=1000 --consumers=10 --differ=5", "seconds cpu_seconds megabytes runs_before"),
    ("second_writer --consumers=50 --updates=40 --rounds=1", "second_writer_ratio"),
    pytest.param("instructions --many=30 --few=10", "instructions_ratio_10k_to_100", marks=VALGRIND),
    pytest.param(
        "latency --samples=2 --burst=3", "latency_ratio_median latency_ratio_p95 burst_ratio", marks=pytest.mark.prefect
    ),
    pytest.param(
        "chain --samples=1 --burst=2 --spark-samples=1",
        "update_to_code_seconds hop_p95_seconds spark_update_to_data_seconds hop_ratio runs_per_minute_ratio",
        marks=SPARK,
    ),
    pytest.param(
        "small_tables --tables=2 --samples=1", "small_tables_ratio seconds pipeline_seconds tables", marks=SPARK
    ),
    pytest.param(
        "year --events 400 2000 --assets=60 --updates=20 --samples=1",
        "start_after_an_hour_seconds",
        marks=pytest.mark.prefect,
    ),
    pytest.param(
        "growth --consumers 20 40 --events=1000 --deployments 5 --recordings=40 --samples=2",
        "ledger_events start_seconds",
        marks=pytest.mark.prefect,
    ),
    (
        "freshness --flows=60 --hourly=10 --keys=20 --readers=4 --updates=8 --items=40 --owed=40",
        "judge_ms_median judge_ms_worst judge_ms_per_reader status_ms_100k owed_ms_longest statements_ratio",
    ),
    pytest.param(
        "checks --rows=20000 --rounds=1",
        "check_cost_ratio values_cost_ratio function_cost_ratio unique_cost_ratio",
        marks=pytest.mark.spark,
    ),
]


@pytest.mark.parametrize(("call", "figures"), BENCHMARKS)
def test_a_benchmark_prints_its_figures(call: str, figures: str) -> None:
    name, *options = call.split()
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert [figure for figure in figures.split() if not found[figure] > 0] == []


def test_pages_that_are_too_slow_are_told() -> None:
    command = [sys.executable, "-m", "benchmarks.pages", "--json", "--size=60", "--events=400", "--queued=1500"]
    status = [
        subprocess.run([*command, "--samples=2", *more], capture_output=True, timeout=170, check=False).returncode
        for more in (["--most=20000"], ["--most=0", "--only=backfills"])
    ]
    assert status == [0, 1]
