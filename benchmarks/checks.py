"""What checks add to a publish of Parquet: `python -m benchmarks.checks`.

The same data is published without checks, with the five that the footers and dictionaries of its files answer, and with
those that need a query, each in turn in one classic session. The ratios are of CPU time, Spark's and Python's: the time
of a write depends on the disk.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import cycle, permutations
from pathlib import Path

from assetflow import Asset, publish
from assetflow.authoring.checks import DeclaredChecks
from assetflow.authoring.recording import TaskRecording
from assetflow.checks import Check, at_least, bounds, check, no_nulls, schema, unique, values
from assetflow.spark.session import SparkProfile, get_session
from benchmarks.report import Figures, median, parser, tell

COLUMNS = "id BIGINT, customer BIGINT, amount DOUBLE, state STRING, note STRING"


@check
def amounts_are_sane(df: object) -> object:
    return df.filter("amount > 1e6")  # type: ignore[attr-defined]


def checks_of(rows: int) -> Mapping[str, Sequence[Check]]:
    """The checks of each publish, by its name."""
    five = [
        at_least(rows),
        no_nulls("id", "customer"),
        bounds("amount", 0, 100),
        schema(COLUMNS),
        values("state", {"open", "paid", "sent"}),
    ]
    return {
        "none": [],
        "check": five,
        "function": [*five, amounts_are_sane],
        "unique": [*five, unique("id")],
    }


def figures(rows: int, rounds: int) -> Figures:
    """The median CPU time and time of each publish, and the ratios to the one without checks."""
    spark = get_session(SparkProfile(master="local[2]"))
    frame = spark.range(rows).selectExpr(
        "id",
        "id % 1000 AS customer",
        "rand(8) * 100 AS amount",
        "element_at(array('open', 'paid', 'sent'), CAST(id % 3 AS INT) + 1) AS state",
        "concat('order ', id % 100000) AS note",
    )
    jvm = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    cpu: dict[str, list[float]] = {}
    wall: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="assetflow-checks-") as folder:
        asset = Asset(Path(folder, "orders").as_uri())
        kinds = checks_of(rows)
        # A first round warms Spark up.
        for number, order in zip(range(rounds + 1), cycle(permutations(kinds)), strict=False):
            for name in order:
                os.sync()
                declared = DeclaredChecks({asset.token: kinds[name]} if kinds[name] else {})
                began, used = time.perf_counter(), _cpu_seconds(jvm)
                with TaskRecording([asset], "", 1, checks=declared).active():
                    publish(frame, asset)
                if number:
                    wall.setdefault(name, []).append(time.perf_counter() - began)
                    cpu.setdefault(name, []).append(_cpu_seconds(jvm) - used)
    seconds = {name: median(each) for name, each in cpu.items()}
    return {
        "rows": rows,
        **{f"{name}_cost_ratio": round(each / seconds["none"], 3) for name, each in seconds.items() if name != "none"},
        **{f"{name}_cpu_seconds": round(each, 2) for name, each in seconds.items()},
        **{f"{name}_seconds": round(median(each), 2) for name, each in wall.items()},
    }


def _cpu_seconds(process: int) -> float:
    """The CPU time of Spark and of this process."""
    used = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK") + time.process_time()


def main() -> None:
    """Measure, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    tell(figures(given.rows, given.rounds), as_json=given.json)


if __name__ == "__main__":
    main()
