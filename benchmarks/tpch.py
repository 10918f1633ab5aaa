"""TPC-H queries as a graph of assets, beside the same queries in plain PySpark: `python -m benchmarks.tpch`.

`tpchgen-cli` (dependency group `benchmark`) makes the tables. Q1, Q3 and Q6 read them and write their results, once in
a flow of `spark_task`s with inlets and outlets, once in a loop without Prefect; both in one process, in turn, and with
the same results.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from prefect import flow

from assetflow import Asset, spark_task
from assetflow.spark.session import SparkProfile, get_session
from benchmarks.report import Figures, median, parser, tell
from tests.environment.prefect_server import PrefectServer, send_what_prefect_holds_back

TABLES = ("lineitem", "orders", "customer")
QUERIES: dict[str, tuple[tuple[str, ...], str]] = {
    "q1": (
        ("lineitem",),
        """
        SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
            sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
            sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
            avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc,
            count(*) AS count_order
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus
        """,
    ),
    "q3": (
        ("customer", "orders", "lineitem"),
        """
        SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey
        WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10
        """,
    ),
    "q6": (
        ("lineitem",),
        """
        SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
            AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24
        """,
    ),
}


def generate(scale: float, folder: Path) -> None:
    """The tables as Parquet files."""
    command = [*_generator(), "parquet", "-s", str(scale), f"--tables={','.join(TABLES)}", f"--output-dir={folder}"]
    subprocess.run(command, check=True, capture_output=True)


def _generator() -> list[str]:
    here = shutil.which("tpchgen-cli")
    if here:
        return [here]
    uv = shutil.which("uv") or ".assetflow/tools/bin/uv"
    return [uv, "run", "--isolated", "--only-group", "benchmark", "tpchgen-cli"]


def query(spark: Any, tables: Path, name: str) -> Any:
    """The result of a query as a DataFrame."""
    read, text = QUERIES[name]
    for table in read:
        spark.read.parquet(str(tables / f"{table}.parquet")).createOrReplaceTempView(table)
    return spark.sql(text)


def plain(tables: Path, results: Path) -> dict[str, float]:
    """All queries without Prefect and assetflow; seconds for each."""
    return {
        name: _timed(lambda name=name: _write(query(get_session(), tables, name), results / name)) for name in QUERIES
    }


def _write(found: Any, place: Path) -> None:
    found.write.mode("overwrite").parquet(str(place))


def graph(tables: Path, results: Path) -> Callable[[], dict[str, float]]:
    """The flow: one task for each query, which reads its tables and updates its result."""
    steps = {name: _step(name, tables, results) for name in QUERIES}

    @flow(name="tpch")
    def run() -> dict[str, float]:
        return {name: _timed(step) for name, step in steps.items()}

    return run


def _step(name: str, tables: Path, results: Path) -> Callable[[], Any]:
    inlets = [Asset(f"file://{tables}/{table}.parquet") for table in QUERIES[name][0]]

    @spark_task(name=name, inlets=inlets, outlets=[Asset(f"file://{results}/{name}")])
    def step(spark: Any) -> Any:
        return query(spark, tables, name)

    return step


def _timed(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def measure(tables: Path, folder: Path, rounds: int) -> Figures:
    """Both ways in turn; a first round of each warms Spark up."""
    run = graph(tables, folder / "graph")
    taken = [(plain(tables, folder / "plain"), run()) for _ in range(rounds + 1)][1:]
    spark = get_session()
    for name in QUERIES:
        written = [spark.read.parquet(str(folder / way / name)).collect() for way in ("plain", "graph")]
        assert sorted(map(str, written[0])) == sorted(map(str, written[1])), f"{name} gives the same both ways"
    rows = [
        {
            "query": name,
            "plain_seconds": round(median(one[name] for one, _ in taken), 2),
            "graph_seconds": round(median(two[name] for _, two in taken), 2),
        }
        for name in QUERIES
    ]
    ratio = median(sum(two.values()) / sum(one.values()) for one, two in taken)
    return {"tpch_ratio": round(ratio, 3), "queries": rows}


def figures(scale: float, rounds: int) -> Figures:
    """All figures."""
    with tempfile.TemporaryDirectory(prefix="assetflow-tpch-") as name:
        folder = Path(name)
        generate(scale, folder / "tables")
        with (
            patch.dict(os.environ, {"ASSETFLOW_HOME": str(folder / "home")}),
            PrefectServer(folder / "prefect") as server,
            server.used_here(),
        ):
            get_session(SparkProfile(master="local[2]"))
            found = measure(folder / "tables", folder, rounds)
            send_what_prefect_holds_back()
    return found | {"scale": scale}


def main() -> None:
    """Measure, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--scale", type=float, default=1.0, help="TPC-H's scale factor")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    tell(figures(given.scale, given.rounds), as_json=given.json)


if __name__ == "__main__":
    main()
