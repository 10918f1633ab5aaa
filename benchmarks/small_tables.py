"""Twenty small tables in a chain, beside one `spark-pipelines run` of the same: `python -m benchmarks.small_tables`.

With assetflow, each table is an asset with a flow, a deployment, a flow run and retries of its own: the warm worker
runs the flows on the warm Connect server, and an update of the first asset starts the chain. Spark's pipeline is one
command, which starts its own Spark: `pipeline_start_seconds` is what the command takes with `dry-run`. Each chain is
measured from the update, or the command, to the last table. Both read and write Parquet.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from assetflow.core.values.assets import Asset
from benchmarks.chain import assetflow_command, updates, worker
from benchmarks.chain_pool import SECONDS, Pool
from benchmarks.latency import installation
from benchmarks.report import Figures, median, parser, tell
from tests.integration.installation import Installation

COLUMNS = "id, value + 1 AS value"
FIRST = "spark.range(1000).selectExpr('id', '0 AS value')"
SPARK = {"ASSETFLOW_SPARK_MASTER": "local[2]", "ASSETFLOW_SPARK_REMOTE": "local"}

FLOW = """
@spark_task(inlets=[ASSETS[{before}]], outlets=[ASSETS[{number}]], retries=1)
def write_{number}(spark):
    return {data}


@assetflow.flow
def table_{number}():
    write_{number}()
"""
PIPELINE = """
@dp.materialized_view
def table_{number}():
    return {data}
"""
SPECIFICATION = """
name: small
storage: {folder}/storage
libraries:
  - glob:
      include: tables.py
"""


def figures(tables: int, samples: int) -> Figures:
    """All figures."""
    with TemporaryDirectory() as folder:
        pipeline = Pipeline(Path(folder), tables)
        start = median(pipeline.seconds("dry-run") for _ in range(samples))
        theirs = [pipeline.seconds("run") for _ in range(samples)]
    ours = _chains(tables, samples)
    return {
        "tables": tables,
        "small_tables_ratio": round(median(ours) / median(theirs), 2),
        "seconds": round(median(ours), 2),
        "pipeline_seconds": round(median(theirs), 2),
        "pipeline_start_seconds": round(start, 2),
    }


class Pipeline:
    """The chain as a project of `spark-pipelines`."""

    def __init__(self, folder: Path, tables: int) -> None:
        self._folder = folder
        parts = [PIPELINE.format(number=1, data=FIRST)]
        for number in range(2, tables + 1):
            data = f"spark.read.table('table_{number - 1}').selectExpr(*'{COLUMNS}'.split(', '))"
            parts.append(PIPELINE.format(number=number, data=data))
        (folder / "tables.py").write_text("from pyspark import pipelines as dp\n" + "".join(parts))
        (folder / "spark-pipeline.yml").write_text(SPECIFICATION.format(folder=folder.as_uri()))

    def seconds(self, command: str) -> float:
        """Return how long a command of `spark-pipelines` takes."""
        # Its catalog ends with its Spark, and a table is not written over files that are there already.
        shutil.rmtree(self._folder / "spark-warehouse", ignore_errors=True)
        programs = Path(sys.executable).parent
        path = os.pathsep.join([str(programs), os.environ["PATH"]])
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PATH": path}
        started = time.monotonic()
        subprocess.run(
            [programs / "spark-pipelines", "--remote", "local[2]", command],
            cwd=self._folder,
            env=environment,
            check=True,
            capture_output=True,
        )
        return time.monotonic() - started


def _chains(tables: int, samples: int) -> list[float]:
    """Return the seconds of each chain with assetflow; the first one warms up, and does not count."""
    with installation() as site:
        environment = site.server.env | {"ASSETFLOW_HOME": str(site.home)} | SPARK
        assetflow_command(environment, "spark", "start")
        try:
            with worker(site, "small", "assetflow", {}, **SPARK) as pool:
                last = _deploy(site, pool, tables)
                site.wait_for_consumers()
                return [_chain(site, pool, last) for _ in range(samples + 1)][1:]
        finally:
            assetflow_command(environment, "spark", "stop")


def _deploy(site: Installation, pool: Pool, tables: int) -> Asset:
    """Deploy a flow for each table, and return the last table."""
    assets = [pool.asset("a"), *(Asset((site.home / f"table_{each}").as_uri()) for each in range(1, tables + 1))]
    source = site.home / "small_tables.py"
    parts = [
        "import assetflow\nfrom assetflow import Asset, spark_task\n\n",
        f"ASSETS = [Asset(each) for each in {[each.uri for each in assets]!r}]\n",
    ]
    for number in range(1, tables + 1):
        before = f"spark.read.parquet(ASSETS[{number - 1}].uri).selectExpr(*'{COLUMNS}'.split(', '))"
        parts.append(FLOW.format(number=number, before=number - 1, data=FIRST if number == 1 else before))
    source.write_text("".join(parts))
    for number in range(1, tables + 1):
        pool.deploy(f"table_{number}", f"table_{number}", assets[number - 1], source=source)
    return assets[-1]


def _chain(site: Installation, pool: Pool, last: Asset) -> float:
    before = len(updates(site, last))
    updated = pool.update("a")
    site.until(lambda: len(updates(site, last)) > before, SECONDS)
    pool.rest()
    return updates(site, last)[-1].timestamp() - updated


def main() -> None:
    """Measure, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--tables", type=int, default=20)
    options.add_argument("--samples", type=int, default=3, help="chains of each")
    given = options.parse_args()
    tell(figures(given.tables, given.samples), as_json=given.json)


if __name__ == "__main__":
    main()
