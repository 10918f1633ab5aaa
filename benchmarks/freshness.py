"""What freshness costs: updates of a large graph of Eager flows, status, and very many targets that are owed at once.

All times are CPU times. An update is measured as the evaluator records it: one transaction, with the passes that judge
what the update concerns, and what they ask for.

Figures:
    judge_ms_median, judge_ms_p95, judge_ms_worst: the CPU time for an update in a graph of 2,000 flows in ten layers,
        with 200 hourly tables of 10,000 keys each.
    judge_ms_per_reader: the same for an update of one source with 500 readers, for each of them.
    statements_ratio: how many more statements such an update takes than one in a graph with a tenth of the flows.
    status_ms_100k: the status of an asset with 100,000 keys, in a new process, after a write.
    owed_ms_longest: the longest transaction when 10,000 targets are owed at once.
    owed_ms_beside: how long an update of another asset waits for its decision meanwhile, at most.
    dagster_tick_ratio: how much longer Dagster takes for one update of the same graph; only with --dagster.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import TypeVar

from sqlalchemy import event

from assetflow import Eager
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import Recording
from assetflow.evaluator.process.service import freeze_garbage_collection
from assetflow.ledger import Ledger
from benchmarks import layers
from benchmarks.layers import BY_KEY, START, Layers
from benchmarks.report import Figures, parser, quantile, tell

T = TypeVar("T")
AT_REST, BY_HOUR = "a table", "an hourly key"


@dataclass
class Costs:
    """The CPU milliseconds of each update of a kind, and its statements."""

    ms: list[float] = field(default_factory=list[float])
    statements: list[int] = field(default_factory=list[int])

    def as_row(self, what: str) -> Figures:
        """Return a row of the table of costs."""
        return {
            "what": what,
            "updates": len(self.ms),
            "median_ms": median(self.ms),
            "p95_ms": quantile(self.ms, 0.95),
            "worst_ms": max(self.ms),
            "statements": median(self.statements),
        }


class Meter:
    """Measures what the updates of a ledger cost."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._sent = 0
        event.listen(ledger._engine, "before_cursor_execute", self._count)

    def record(self, costs: Costs, recording: Recording) -> list[Decision]:
        """Record an update, note what it costs, and return the decisions that follow."""
        before = self._sent
        ms, ((_, made),) = cpu_ms(lambda: self._ledger.writer.events.record([recording], START))
        costs.ms.append(ms)
        costs.statements.append(self._sent - before)
        return made

    def _count(self, *_: object) -> None:
        self._sent += 1


def judging(flows: int, hourly: int, keys: int, readers: int, updates: int) -> dict[str, Costs]:
    """Return what updates of a graph cost: of sources and made tables, of hourly keys, and of the shared source.

    Parameters:
        updates: how many of the first two kinds are measured.
    """
    graph, random = Layers(flows, hourly, readers), Random(18)
    at_rest, by_hour, shared, busy = Costs(), Costs(), Costs(), Costs()
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
        graph.deploy(ledger, keys)
        freeze_garbage_collection()
        meter = Meter(ledger)
        follow(ledger, graph, meter, Costs(), layers.recording(graph.sources[0]))
        while len(at_rest.ms) < updates:
            follow(ledger, graph, meter, at_rest, layers.recording(random.choice(graph.tables_and_sources)))
        for key in random.choices(layers.hours(keys), k=updates // 4):
            follow(ledger, graph, meter, by_hour, layers.recording(random.choice(graph.hours), key))
        meter.record(shared, layers.recording(graph.shared))
        while len(busy.ms) < updates // 4:
            follow(ledger, graph, meter, busy, layers.recording(random.choice(graph.tables_and_sources)), version=None)
    return {AT_REST: at_rest, BY_HOUR: by_hour, "the shared source": shared, "a table, others run and wait": busy}


def follow(
    ledger: Ledger,
    graph: Layers,
    meter: Meter,
    costs: Costs,
    first: Recording,
    version: str | None = layers.FIRST,
) -> None:
    """Record an update, and what the runs make that follow it.

    Parameters:
        version: what the runs make; the version that was there starts nothing below, another one more runs, which
            this benchmark does not end.
    """
    for decision in meter.record(costs, first):
        meter.record(costs, graph.run(ledger, decision, version))
        ledger.writer.decisions.ended("Completed", START, decision_id=decision.id)


def status_ms(keys: int) -> float:
    """Return the CPU milliseconds for the status of an asset with so many keys, in a new process, after a write."""
    hours, table = layers.named("hours"), layers.named("table")
    with TemporaryDirectory() as folder:
        place = Path(folder) / "ledger.db"
        with Ledger.open(place) as ledger:
            layers.record_keys(ledger, [hours], keys)
            layers.record_keys(ledger, [table], keys)
            layers.deploy(ledger, Eager(default_partition_mapper=BY_KEY), table, [hours])
            _judge_all(ledger)
            ledger.writer.events.record([layers.recording(hours, layers.hours(1)[0])], START)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            return process.submit(_status_ms, place, table.uri).result()


def _judge_all(ledger: Ledger) -> None:
    """Let the clock judge what a deploy has set aside."""
    while (again := ledger.writer.clock.run(START, START).next) is not None and again <= START:
        pass


def _status_ms(place: Path, uri: str) -> float:
    def ask() -> None:
        with Ledger.open(place) as ledger:
            ledger.reader.freshness.status(uri, None, START)

    return cpu_ms(ask)[0]


def owed(targets: int) -> tuple[float, float]:
    """Return the longest transaction while so many targets are owed, and the longest wait of another asset's update.

    Both in CPU milliseconds: an update waits for the transaction that goes on, and then has its own.
    """
    hours, table, raw, fact = map(layers.named, ("hours", "table", "raw", "fact"))
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
        layers.record_keys(ledger, [hours], targets)
        layers.deploy(ledger, Eager(), fact, [raw])
        bugfix = Eager(catchup="all", default_partition_mapper=BY_KEY)
        spent = [cpu_ms(lambda: layers.deploy(ledger, bugfix, table, [hours]))[0]]
        beside: list[float] = []
        while True:
            beside.append(cpu_ms(lambda: layers.record(ledger, [raw]))[0])
            ms, passed = cpu_ms(lambda: ledger.writer.clock.run(START, START))
            if passed.next is None or passed.next > START:
                return max(spent), max(spent) + max(beside)
            spent.append(ms)


def dagster_ms(python: str, flows: int, hourly: int, keys: int) -> float:
    """Return the CPU milliseconds in which Dagster handles one update of the same graph.

    Parameters:
        python: the interpreter of an environment with Dagster.
    """
    script = Path(__file__).with_name("dagster_tick.py")
    sizes = [str(each) for each in (flows, hourly, keys)]
    done = subprocess.run([python, script, *sizes], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])["tick_ms_median"]


def cpu_ms(work: Callable[[], T]) -> tuple[float, T]:
    """Return the CPU milliseconds that some work takes, and its result."""
    began = time.process_time()
    result = work()
    return 1000 * (time.process_time() - began), result


def main() -> None:
    """Measure, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--flows", type=int, default=1_800, help="flows without keys, in ten layers")
    options.add_argument("--hourly", type=int, default=200, help="flows with hourly keys")
    options.add_argument("--keys", type=int, default=10_000, help="keys of each hourly table")
    options.add_argument("--readers", type=int, default=500, help="flows that read the shared source")
    options.add_argument("--updates", type=int, default=300, help="updates to measure")
    options.add_argument("--items", type=int, default=100_000, help="keys of the asset whose status is asked")
    options.add_argument("--owed", type=int, default=10_000, help="targets that are owed at once")
    options.add_argument("--dagster", metavar="PYTHON", help="the interpreter of an environment with Dagster 1.13")
    given = options.parse_args()
    large = judging(given.flows, given.hourly, given.keys, given.readers, given.updates)
    small = judging(given.flows // 10, given.hourly, given.keys // 10, given.readers, given.updates)
    ms = [each for kind in (AT_REST, BY_HOUR) for each in large[kind].ms]
    longest, beside = owed(given.owed)
    found: Figures = {
        "judge_ms_median": median(ms),
        "judge_ms_p95": quantile(ms, 0.95),
        "judge_ms_worst": max(ms),
        "judge_ms_per_reader": median(large["the shared source"].ms) / given.readers,
        "statements_ratio": max(
            median(large[kind].statements) / median(small[kind].statements) for kind in (AT_REST, BY_HOUR)
        ),
        "status_ms_100k": status_ms(given.items),
        "owed_ms_longest": longest,
        "owed_ms_beside": beside,
        "updates": [costs.as_row(kind) for kind, costs in large.items()],
    }
    if given.dagster:
        found["dagster_tick_ms"] = dagster_ms(given.dagster, given.flows, given.hourly, given.keys)
        found["dagster_tick_ratio"] = found["dagster_tick_ms"] / found["judge_ms_median"]
    tell(found, as_json=given.json)


if __name__ == "__main__":
    main()
