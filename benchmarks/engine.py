"""How many recordings a second the evaluator takes in, queues and decides on: `python -m benchmarks.engine`.

N recordings go into M consumers on the evaluator's own road (its line, its ledger thread, batches that share a
transaction, a pass after each recording), on a ledger that is durable: SQLite in WAL mode with `synchronous=FULL`.
The evaluator has been at work before: it has taken in as many recordings as are measured then, and each asset was
updated at least once. CPU time counts all threads of this process. Figures are medians over rounds, each on a new
ledger and in a process of its own; what is compared takes turns.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from uuid import UUID, uuid4

from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from assetflow.core.values.events import Recording
from assetflow.evaluator.health import Health
from assetflow.evaluator.incoming.inbox import Inbox
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.process.service import freeze_garbage_collection
from assetflow.ledger import Ledger
from benchmarks import ring
from benchmarks.report import Figures, parser, tell

POSTGRES = "postgresql+psycopg://root@127.0.0.1:5432"


@dataclass(frozen=True)
class Measured:
    """What so many recordings into so many consumers cost."""

    database: str
    recordings: int
    consumers: int
    decisions: int
    events_per_second: float
    cpu_ms_per_event: float
    memory_mb: float


async def measure(
    place: str | Path,
    recordings: int,
    consumers: int,
    *,
    deploy: bool = True,
    counting: AbstractContextManager[None] | None = None,
) -> Measured:
    """One round, on a new ledger or on one where the consumers of the ring are deployed; `counting` around it."""
    assets = ring.assets(consumers)
    if deploy:
        with Ledger.open(place) as ledger:
            ring.deploy(ledger, assets)
    before, made = ring.recordings(assets, max(consumers, recordings), seed=0), ring.recordings(assets, recordings)
    async with LedgerThread(place) as thread:
        await _seconds(thread, before)
        start = await thread.call(thread.ledger.reader.status)
        freeze_garbage_collection()
        with counting or nullcontext():
            wall, cpu = await _seconds(thread, made)
        end = await thread.call(thread.ledger.reader.status)
    assert end.last_event == start.last_event + recordings, "every recording is in the ledger"
    database = "postgres" if "://" in str(place) else "sqlite"
    decisions = end.last_decision - start.last_decision
    memory = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    return Measured(database, recordings, consumers, decisions, recordings / wall, 1000 * cpu / recordings, memory)


def in_own_process(place: str | Path, recordings: int, consumers: int, *, deploy: bool = True) -> Measured:
    """One round, which finds nothing in memory from rounds before."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_measure, place, recordings, consumers, deploy).result()


def _measure(place: str | Path, recordings: int, consumers: int, deploy: bool) -> Measured:
    return asyncio.run(measure(place, recordings, consumers, deploy=deploy))


async def _no_starts(_: Sequence[UUID]) -> Mapping[UUID, datetime]:
    return {}


async def _seconds(thread: LedgerThread, recordings: Sequence[Recording]) -> tuple[float, float]:
    """Wall and CPU time until all are in the ledger."""
    inbox = Inbox(thread, Health(), lambda: datetime.now(UTC), lambda: None, lambda: None, _no_starts)
    working = asyncio.create_task(inbox.run())
    wall, cpu = time.perf_counter(), time.process_time()
    for recording in recordings:
        inbox.take(recording)
    await inbox.settled()
    taken = time.perf_counter() - wall, time.process_time() - cpu
    working.cancel()
    return taken


def on_sqlite(recordings: int, consumers: int, rounds: int) -> Measured:
    """The median round on SQLite."""
    return _middle([_round_on_sqlite(recordings, consumers) for _ in range(rounds)])


def in_turn(recordings: int, many: int, few: int, rounds: int) -> tuple[Measured, Measured, float]:
    """The median rounds with many and with few consumers on SQLite, and how much more an event costs with many.

    A machine is not equally fast all the time: each round is compared with the one beside it.
    """
    pairs = [(_round_on_sqlite(recordings, many), _round_on_sqlite(recordings, few)) for _ in range(rounds)]
    large, dense = zip(*pairs, strict=True)
    return _middle(large), _middle(dense), median(a.cpu_ms_per_event / b.cpu_ms_per_event for a, b in pairs)


def _round_on_sqlite(recordings: int, consumers: int) -> Measured:
    with tempfile.TemporaryDirectory(prefix="assetflow-engine-") as folder:
        return in_own_process(Path(folder) / "ledger.db", recordings, consumers)


def on_postgres(recordings: int, consumers: int, rounds: int) -> Measured | None:
    """The median round on Postgres; none when there is none."""
    found: list[Measured] = []
    try:
        for _ in range(rounds):
            with _database() as url:
                found.append(in_own_process(url, recordings, consumers))
    except OperationalError:
        return None
    return _middle(found)


def _middle(found: Sequence[Measured]) -> Measured:
    return sorted(found, key=lambda each: each.events_per_second)[len(found) // 2]


@contextmanager
def _database() -> Iterator[str]:
    name = f"assetflow_engine_{uuid4().hex[:12]}"
    server = create_engine(f"{POSTGRES}/postgres", isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield f"{POSTGRES}/{name}"
    finally:
        with server.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        server.dispose()


def figures(thousand: int, many: int, few: int, rounds: int) -> Figures:
    """All figures: `thousand` recordings into `few` and into `thousand` consumers, `many` into `many` and `few`."""
    small = on_sqlite(thousand, few, rounds)
    middle = on_sqlite(thousand, thousand, rounds)
    large, dense, ratio = in_turn(many, many, few, rounds)
    found = [small, middle, large, dense]
    result: Figures = {
        "events_per_second_1k": round(middle.events_per_second),
        "events_per_second_10k": round(large.events_per_second),
        "cpu_ms_per_event_1k": round(middle.cpu_ms_per_event, 4),
        "cpu_ms_per_event_10k": round(large.cpu_ms_per_event, 4),
        "cost_ratio_10k_to_100": round(ratio, 3),
        "memory_mb": round(max(each.memory_mb for each in found)),
    }
    postgres = on_postgres(thousand, thousand, rounds)
    if postgres is not None:
        found.append(postgres)
        result["postgres_events_per_second_1k"] = round(postgres.events_per_second)
        result["postgres_ratio"] = round(middle.events_per_second / postgres.events_per_second, 2)
    return result | {"sizes": [asdict(each) for each in found]}


def main() -> None:
    """Measure, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--thousand", type=int, default=1_000, help="recordings and consumers of the middle size")
    options.add_argument("--many", type=int, default=10_000, help="recordings and consumers of the large size")
    options.add_argument("--few", type=int, default=100, help="consumers of the small size")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    tell(figures(given.thousand, given.many, given.few, given.rounds), as_json=given.json)


if __name__ == "__main__":
    main()
