"""What a `spark_task` costs beside a plain Prefect task with the same Spark work: `python -m benchmarks.overhead`.

Beside both, a plain task that keeps three versions, and removes the oldest when it has written. The tasks run in
turn, in one flow run and one classic session. Then whole flow runs, each in a process of its own: with a classic
session, and on the warm Connect server that they share.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

from assetflow.spark.session import SparkProfile, get_session
from benchmarks.report import Figures, median, parser, tell
from benchmarks.spark_work import in_turn
from tests.environment.prefect_server import PrefectServer, send_what_prefect_holds_back

SECONDS = 300.0
FLOW_RUNS = 5


def ratios(folder: Path, sizes: list[int], rounds: int) -> list[Figures]:
    """For each size, the seconds of the tasks; a first round of each warms Spark up."""
    get_session(SparkProfile(master="local[2]"))
    found: list[Figures] = []
    for rows in sizes:
        taken = in_turn(rows, rounds + 1, str(folder / str(rows)))
        seconds = {name: median(each[1:]) for name, each in taken.items()}
        found.append(
            {
                "rows": rows,
                **{f"{name}_seconds": round(each, 3) for name, each in seconds.items()},
                "ratio": round(seconds["spark_task"] / seconds["plain"], 3),
                "ratio_to_keeping": round(seconds["spark_task"] / seconds["keeping"], 3),
            }
        )
    return found


def flow_run_seconds(environment: Mapping[str, str], rows: int, folder: Path, rounds: int) -> float:
    """The median time of a whole flow run in a process of its own."""
    taken: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        _run(environment, "benchmarks.spark_work", str(rows), str(folder))
        taken.append(time.perf_counter() - started)
    return median(taken)


def _run(environment: Mapping[str, str], module: str, *arguments: str) -> None:
    command = [sys.executable, "-m", module, *arguments]
    subprocess.run(command, env=dict(environment), check=True, capture_output=True, timeout=SECONDS)


def figures(sizes: list[int], rounds: int) -> Figures:
    """All figures."""
    with tempfile.TemporaryDirectory(prefix="assetflow-overhead-") as name:
        folder = Path(name)
        with PrefectServer(folder / "prefect") as server:
            environment = server.env | {"ASSETFLOW_HOME": str(folder / "home"), "ASSETFLOW_SPARK_MASTER": "local[2]"}
            connect = environment | {"ASSETFLOW_SPARK_REMOTE": "local"}
            _run(connect, "assetflow", "spark", "start")
            try:
                warm = flow_run_seconds(connect, sizes[0], folder / "warm", FLOW_RUNS)
            finally:
                _run(connect, "assetflow", "spark", "stop")
            classic = flow_run_seconds(environment, sizes[0], folder / "classic", FLOW_RUNS)
            ours = {name: value for name, value in environment.items() if name.startswith("ASSETFLOW_")}
            with server.used_here(), patch.dict(os.environ, ours):
                found = ratios(folder, sizes, rounds)
                send_what_prefect_holds_back()
    return {
        "overhead_ratio": found[0]["ratio"],
        "overhead_ratio_large": found[-1]["ratio"],
        "connect_ratio": round(warm / classic, 3),
        "classic_flow_run_seconds": round(classic, 2),
        "connect_flow_run_seconds": round(warm, 2),
        "sizes": found,
    }


def main() -> None:
    """Measure, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    options.add_argument(
        "--rounds",
        type=int,
        default=12,
        help="of the tasks; a multiple of six has each of them first, second and third as often",
    )
    given = options.parse_args()
    tell(figures(given.rows, given.rounds), as_json=given.json)


if __name__ == "__main__":
    main()
