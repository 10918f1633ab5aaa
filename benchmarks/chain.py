"""From an update to running code: the warm worker beside Prefect's process worker: `python -m benchmarks.chain`.

An update of `a` starts a flow run that makes `b`, and `b` starts a second one. Three workers take turns: the warm one;
Prefect's process worker that asks every second and starts one process for a run; the same with Prefect's defaults.
`update_to_code` is the time from the update of `a` to the first line of the task that makes `b`; `hop` the time from
that line to the first line of the next flow run's task. Then the first two get many updates for as many consumers at
once. At last, the warm worker runs a flow with one small `spark_task` on the warm Connect server.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime

from assetflow.core.values.assets import Asset
from assetflow.ledger.records import EventFilter
from benchmarks.chain_pool import SECONDS, Pool
from benchmarks.latency import installation
from benchmarks.report import Figures, median, parser, quantile, tell
from tests.integration.installation import Installation

WARM, PROCESS, DEFAULTS = "warm", "process_1s", "process_defaults"
TIMES = ("update_to_code_seconds", "update_to_code_p95_seconds", "hop_seconds", "hop_p95_seconds")
ONE_PROCESS = {"command": f"{sys.executable} -m prefect.engine"}


def figures(samples: int, burst: int, spark_samples: int) -> Figures:
    """All figures."""
    with installation() as site:
        with _workers(site) as pools:
            chains = _chains(site, pools, samples)
            bursts = [_burst(site, pools[name], burst) for name in (WARM, PROCESS)]
        spark = _spark(site, spark_samples) if spark_samples else []
    rows = [_row(name, chains[name]) for name in chains]
    warm, process = rows[0], rows[1]
    figures: Figures = {
        name: warm[name]
        for name in ("update_to_code_seconds", "update_to_code_p95_seconds", "hop_seconds", "hop_p95_seconds")
    }
    figures |= {
        "update_to_code_ratio": round(warm["update_to_code_seconds"] / process["update_to_code_seconds"], 3),
        "hop_ratio": round(warm["hop_seconds"] / process["hop_seconds"], 3),
        "cpu_seconds_per_run_ratio": round(warm["cpu_seconds_per_run"] / process["cpu_seconds_per_run"], 3),
        "runs_per_minute": round(bursts[0], 1),
        "process_runs_per_minute": round(bursts[1], 1),
        "runs_per_minute_ratio": round(bursts[0] / bursts[1], 2),
        "spark_update_to_data_seconds": round(median(spark), 3) if spark else None,
        "spark_first_seconds": round(spark[0], 3) if spark else None,
    }
    return figures | {"workers": rows}


@contextmanager
def worker(site: Installation, name: str, kind: str, variables: dict[str, object], **settings: str) -> Iterator[Pool]:
    """A pool with a worker that runs until the end of the context."""
    pool = Pool(site, name, kind, variables, settings)
    try:
        yield pool
    finally:
        pool.close()


@contextmanager
def _workers(site: Installation) -> Iterator[dict[str, Pool]]:
    with ExitStack() as stack:
        pools = {
            WARM: stack.enter_context(worker(site, WARM, "assetflow", {})),
            PROCESS: stack.enter_context(
                worker(site, PROCESS, "process", dict(ONE_PROCESS), PREFECT_WORKER_QUERY_SECONDS="1")
            ),
            DEFAULTS: stack.enter_context(worker(site, DEFAULTS, "process", {})),
        }
        yield pools


Chain = tuple[float, float, float]


def _chains(site: Installation, pools: dict[str, Pool], samples: int) -> dict[str, list[Chain]]:
    """Return, for each worker, the seconds to the first line, the seconds of the hop, and the CPU time for each run."""
    for pool in pools.values():
        pool.deploy("first", "first", pool.asset("a"))
        pool.deploy("second", "second", pool.asset("b"))
    site.wait_for_consumers()
    found: dict[str, list[Chain]] = {name: [] for name in pools}
    # The first round warms up, and does not count.
    for number in range(samples + 1):
        for name, pool in pools.items():
            chain = _chain(pool, number)
            if number:
                found[name].append(chain)
    return found


def _chain(pool: Pool, number: int) -> Chain:
    cpu = pool.cpu_seconds()
    updated = pool.update("a")
    first = pool.wait_for_notes("b", number + 1)
    second = pool.wait_for_notes("c", number + 1)
    pool.rest()
    return first - updated, second - first, (pool.cpu_seconds() - cpu) / 2


def _burst(site: Installation, pool: Pool, number: int) -> float:
    """Return the runs a minute for so many updates at once, from the first update to the end of the last run."""
    names = [f"one{each}" for each in range(number)]
    for name in names:
        pool.deploy("one", name, pool.asset(name))
    site.wait_for_consumers()
    started = time.time()
    for name in names:
        pool.update(name)
    pool.wait_for_notes("one", number)
    pool.rest()
    return 60 * number / (time.time() - started)


def _spark(site: Installation, samples: int) -> list[float]:
    """Return the seconds from updates to the data that a `spark_task` on the warm Connect server makes of them."""
    ours = {"ASSETFLOW_SPARK_MASTER": "local[2]", "ASSETFLOW_SPARK_REMOTE": "local"}
    environment = site.server.env | {"ASSETFLOW_HOME": str(site.home)} | ours
    assetflow_command(environment, "spark", "start")
    try:
        with worker(site, "spark", "assetflow", {}, **ours) as pool:
            pool.deploy("data", "data", pool.asset("a"))
            site.wait_for_consumers()
            return [_update_to_data(site, pool) for _ in range(samples)]
    finally:
        assetflow_command(environment, "spark", "stop")


def _update_to_data(site: Installation, pool: Pool) -> float:
    data = Asset((site.home / f"data-{pool.name}").as_uri())
    before = len(updates(site, data))
    updated = pool.update("a")
    site.until(lambda: len(updates(site, data)) > before, SECONDS)
    pool.rest()
    return updates(site, data)[-1].timestamp() - updated


def updates(site: Installation, asset: Asset) -> list[datetime]:
    """Return when the updates of an asset happened."""
    with site.reader() as ledger:
        return [event.timestamp for event in ledger.events.find(EventFilter(uri=asset.uri))]


def assetflow_command(environment: dict[str, str], *arguments: str) -> None:
    """Run a command of assetflow."""
    subprocess.run([sys.executable, "-m", "assetflow", *arguments], env=environment, check=True, capture_output=True)


def _row(name: str, chains: list[Chain]) -> Figures:
    first, hops, cpu = ([each[part] for each in chains] for part in range(3))
    return {
        "worker": name,
        "samples": len(chains),
        "update_to_code_seconds": round(median(first), 3),
        "update_to_code_p95_seconds": round(quantile(first, 0.95), 3),
        "hop_seconds": round(median(hops), 3),
        "hop_p95_seconds": round(quantile(hops, 0.95), 3),
        "cpu_seconds_per_run": round(median(cpu), 3),
    }


def main() -> None:
    """Measure, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--samples", type=int, default=30, help="chains of each worker")
    options.add_argument("--burst", type=int, default=50, help="updates at once, for as many consumers")
    options.add_argument("--spark-samples", type=int, default=10, help="flow runs with Spark; 0 for none")
    given = options.parse_args()
    tell(figures(given.samples, given.burst, given.spark_samples), as_json=given.json)


if __name__ == "__main__":
    main()
