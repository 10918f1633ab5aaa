"""More flow runs at a time than Prefect's server on SQLite can bear by itself: all of them end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.environment.prefect_server import PrefectServer
from tests.worker.pool import ENDED, Pool

# Each keeps two websockets open, and Prefect lets 100 connections in.
RUNS = 64
SECONDS = 900.0


@pytest.mark.prefect
@pytest.mark.long
@pytest.mark.timeout(2 * SECONDS)
def test_all_runs_end_that_go_on_at_the_same_time(tmp_path: Path) -> None:
    with PrefectServer(tmp_path / "server") as server:
        pool = Pool(server, tmp_path)
        try:
            runs = [pool.order(name=f"run{number}", until_there="gate") for number in range(RUNS)]
            pool.until(lambda: sum(1 for _ in pool.home.glob("run*")) == RUNS, SECONDS)
            (pool.home / "gate").touch()
            pool.until(lambda: all(pool.state(run) in ENDED for run in runs), SECONDS)
            assert {pool.state(run) for run in runs} == {"COMPLETED"}
        finally:
            pool.close()
