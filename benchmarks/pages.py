"""How long the pages take on a large ledger: `python -m benchmarks.pages`.

A server with the pages in a process of its own, on a ledger of 5,000 assets, each made by a flow, 5,000 consumers,
1,000 watchers and 1,000,000 events with their receipts and decisions. One browser asks for one page after the other,
of another asset, consumer or run each time. `--only graph` measures the pages with this word in their names. It exits
with 1 if the 95th percentile of a page is above `--most` milliseconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx

from assetflow import Asset, AssetWatcher
from assetflow.core.graph.layout import MOST
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from assetflow.ledger.records import EventFilter
from assetflow.operations import backfill
from assetflow.operations.backfill import BackfillWanted
from assetflow.operations.installation import Installation
from assetflow.watchers import FileTrigger
from benchmarks import ring
from benchmarks.growth import fill
from benchmarks.report import Figures, median, parser, quantile, tell
from tests.environment.prefect_server import free_port

HUB = Asset("s3://lake/hub", name="hub", group="lake")
LONG, LAST, KEYED = (Asset(f"s3://lake/{name}", name=name) for name in ("long", "last", "keyed"))
DAYS = 1_000
FANNED_OUT = 500
WATCHED = 1_000
AT_ONCE = 5_000
SECONDS = 60.0
MOST_MS = 150.0
_DECISIONS = """
INSERT INTO decision (number, id, consumer, deployment_id, target_key, made, decided, kind, status, flow_run_id,
    launched, ended, attempts, error, run_state, noted, by_deadline, because)
SELECT event.sequence, lower(hex(randomblob(16))), consumer.id, consumer.deployment_id, '', recorded, recorded, 'asset',
    'ended', lower(hex(randomblob(16))), recorded, recorded, 1, '', 'Completed', recorded, 0, '[]'
FROM event JOIN consumer ON consumer.id = 1 + event.sequence % :consumers
"""

Page = Callable[[Random], str]
SHOWN = ("failed", "waiting", "inactive")


def prepare(place: Path, size: int, events: int, queued: int, seconds: float = 0.0) -> None:
    """The ledger, with `seconds` from one event to the next.

    Half of the consumers wait for something; `HUB` has many consumers and partitions, and the events of `LONG` wait for
    one consumer and were consumed by a run of another, those of `KEYED` wait key by key.
    """
    fill(place, events, size, seconds)
    now = datetime.now(UTC)
    with Ledger.open(place) as ledger:
        with ledger.writes() as connection:
            connection.exec_driver_sql(_DECISIONS, {"consumers": size})
        assets = ring.assets(size)
        for number, asset in enumerate(assets):
            told = declaration_to_text(FlowDeclaration(produces=(asset,)))
            ledger.writer.lineage.declare(uuid4(), f"make/{number:06}", told, now)
        for number, asset in enumerate(assets[:WATCHED]):
            watched = Asset(asset.uri, watchers=[AssetWatcher(f"w{number:06}", FileTrigger(f"/in/{number}/*"))])
            told = declaration_to_text(FlowDeclaration(reads=(watched,)))
            ledger.writer.lineage.declare(uuid4(), f"watch/{number:06}", told, now)
        ledger.writer.events.record(ring.recordings(assets, size // 2), now)
        days = (now - timedelta(days=number) for number in range(DAYS))
        _record(ledger, *(AssetEvent(uuid4(), HUB, day, ring.BY, partition_key=f"{day:%Y-%m-%d}") for day in days))
        for number in range(FANNED_OUT):
            _deploy(ledger, f"fan/{number:06}", HUB)
        _record(ledger, AssetEvent(uuid4(), HUB, now, ring.BY))
        for name, other in (("ran/once", LAST), ("waits/long", Asset("s3://lake/never"))):
            _deploy(ledger, name, LONG & other)
        _record(ledger, *(AssetEvent(uuid4(), LONG, now, ring.BY, {"row": number}) for number in range(queued)))
        _record(ledger, AssetEvent(uuid4(), LAST, now, ring.BY))
        _deploy(ledger, "waits/keys", PartitionedAssetTimetable(assets=KEYED & Asset("s3://lake/never")))
        for first in range(0, queued, AT_ONCE):
            keys = (f"k{number:06}" for number in range(first, min(first + AT_ONCE, queued)))
            _record(ledger, *(AssetEvent(uuid4(), KEYED, now, ring.BY, partition_key=key) for key in keys))
        _deploy(ledger, "days/shop", PartitionedAssetTimetable(assets=Asset("s3://lake/never")), produces=(HUB,))
        whole = BackfillWanted(HUB.uri)
        backfill.begin(Installation(ledger), whole, backfill.plan(ledger.reader, whole))
        for decision in ledger.reader.decisions.find(status="waiting", limit=size):
            ledger.writer.decisions.launched(decision.id, uuid4(), now)


def _deploy(ledger: Ledger, name: str, schedule: object, produces: tuple[Asset, ...] = ()) -> None:
    text = declaration_to_text(FlowDeclaration(ConsumerOptions(to_schedule(schedule)), produces))
    ledger.writer.consumers.deploy(name, uuid4(), uuid4(), text, False, False, datetime.now(UTC))


def _record(ledger: Ledger, *events: AssetEvent) -> None:
    ledger.writer.events.record([Recording(uuid4(), events)], datetime.now(UTC))


def pages(ledger: Ledger, size: int, events: int, queued: int) -> dict[str, Page]:
    """The pages by their names: each gives an address."""
    reader = ledger.reader
    runs = [each.flow_run_id for each in reader.decisions.find(before=events, limit=1000) if each.flow_run_id]
    seen = [event.id for event in reader.events.find(EventFilter(from_sequence=events // 2), limit=1000)]
    (fanned_out,) = reader.events.find(EventFilter(uri=HUB.uri), newest_first=True, limit=1)
    (consumer,) = (each for each in reader.consumers.all() if each.consumer.name == "ran/once")
    (long,) = reader.decisions.find(consumer=consumer.consumer.id, limit=1)

    earlier = datetime.now(UTC) - timedelta(hours=1)

    def uri(random: Random) -> str:
        return quote(f"s3://lake/ring/{random.randrange(size):06}", safe="")

    def one(place: str, ids: list[UUID]) -> Page:
        return lambda random: f"{place}/{random.choice(ids)}"

    return {
        "assets": lambda _: "/assets",
        "assets, a later page": lambda random: f"/assets?offset={50 * random.randrange(size // 50)}",
        "assets, last updated first": lambda _: "/assets?sort=updated",
        "assets, searched": lambda random: f"/assets?search=ring/{random.randrange(100):04}",
        "asset": lambda random: f"/asset?asset={uri(random)}",
        "asset of 500 consumers": lambda _: "/asset?asset=hub",
        "asset, unknown": lambda random: f"/asset?asset=s3://lake/rink/{random.randrange(size)}",
        "graph of 500 nodes": lambda _: f"/api/v1/lineage?focus=asset:{HUB.uri}&depth=2&limit=500",
        "status of an asset": lambda random: f"/asset/status?asset={uri(random)}",
        "partitions": lambda random: f"/asset/partitions?asset=hub&at=2026-{1 + random.randrange(9):02}-01",
        "event": one("/events", seen),
        "event that started 500 runs": lambda _: f"/events/{fanned_out.id}",
        "consumers": lambda _: "/consumers",
        "consumers, a later page": lambda random: f"/consumers?offset={50 * random.randrange(size // 50)}",
        "consumers, searched": lambda random: f"/consumers?search={random.randrange(100):04}",
        **{f"consumers, {show}": lambda _, show=show: f"/consumers?show={show}" for show in SHOWN},
        **{f"consumers, by {sort}": lambda _, sort=sort: f"/consumers?sort={sort}" for sort in ("decided", "queued")},
        "condition of a consumer": lambda random: f"/consumers/ring/{random.randrange(size):06}/condition",
        "consumer": lambda random: f"/consumers/ring/{random.randrange(size):06}",
        "consumer, at an earlier time": lambda random: (
            f"/consumers/ring/{random.randrange(size):06}?at={quote(earlier.isoformat())}"
        ),
        f"consumer with {queued:,} queued": lambda _: "/consumers/waits/long",
        f"consumer whose run had {queued:,}": lambda _: "/consumers/ran/once",
        f"consumer with {queued:,} partitions": lambda _: "/consumers/waits/keys",
        "one of these partitions": lambda random: f"/consumers/waits/keys?key=k{random.randrange(queued):06}",
        "run": one("/runs", runs),
        f"run that consumed {queued:,}": lambda _: f"/runs/{long.flow_run_id}",
        "API: that run": lambda _: f"/api/v1/runs/{long.flow_run_id}",
        "API: that consumer": lambda _: "/api/v1/consumers/ran/once",
        "backfills": lambda _: "/backfills",
        f"backfill of {DAYS:,} keys": lambda _: "/backfills/1",
        "dry run of a backfill": lambda random: f"/backfills/new?asset=hub&start=2026-{1 + random.randrange(9):02}",
        "overview": lambda _: "/",
        "graph, the whole": lambda _: "/graph",
        f"graph, {MOST:,} nodes": lambda _: "/graph?fold=false",
        "graph of an asset": lambda random: f"/graph?focus={uri(random)}",
        "API: the whole graph": lambda _: "/api/v1/graph",
        "API: the graph of an asset": lambda random: f"/api/v1/graph?focus={uri(random)}",
        "what if an asset is updated": lambda random: f"/asset/events/preview?asset={uri(random)}",
        "what if a consumer is run": lambda random: f"/consumers/ring/{random.randrange(size):06}/run/preview",
        "watched asset": lambda random: (
            f"/asset?asset={quote(f's3://lake/ring/{random.randrange(WATCHED):06}', safe='')}"
        ),
        "API: watchers": lambda _: "/api/v1/watchers?limit=100",
        "search": lambda random: f"/search?q={random.randrange(100):04}",
        "documentation of the API": lambda _: "/docs",
        "activity": lambda _: "/activity",
        "activity, older": lambda random: f"/activity?events={random.randrange(events)}&decisions={events // 2}",
        "activity of an asset": lambda random: f"/activity?asset={uri(random)}",
        "activity of a consumer": lambda random: f"/activity?consumer=ring/{random.randrange(size):06}",
    }


@dataclass(frozen=True)
class Server:
    """A running server with the pages."""

    url: str
    process: subprocess.Popen[bytes]

    @property
    def cpu_ms(self) -> float:
        """The milliseconds of CPU time that it took so far; 0 where the system does not tell."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        if not stat.exists():
            return 0.0
        ticks = stat.read_text().rpartition(")")[2].split()[11:13]
        return 1000 * sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(place: Path) -> Iterator[Server]:
    """`assetflow server start` without an evaluator."""
    port = free_port()
    command = [sys.executable, "-m", "assetflow", "server", "start", "--no-evaluator", "--port", str(port)]
    environment = os.environ | {"ASSETFLOW_HOME": str(place.parent), "ASSETFLOW_DATABASE_URL": f"sqlite:///{place}"}
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        _until_it_answers(url, process)
        yield Server(url, process)
    finally:
        process.terminate()
        process.wait()


def _until_it_answers(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            httpx.get(f"{url}/health").raise_for_status()
            return
        except httpx.HTTPError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def measure(server: Server, client: httpx.Client, page: Page, samples: int) -> Figures:
    """Milliseconds from request to the last byte; the first answer, which compiles a template, is left out.

    `cpu_ms` is the server's CPU time for an answer, which does not depend on what else the machine does.
    """
    random = Random(6)
    taken: list[float] = []
    answer = client.get(page(random))
    before = server.cpu_ms
    for _ in range(samples):
        started = time.perf_counter()
        answer = client.get(page(random))
        taken.append(1000 * (time.perf_counter() - started))
        assert answer.status_code in (200, 303, 404), answer.text
    return {
        "median_ms": round(median(taken), 1),
        "p95_ms": round(quantile(taken, 0.95), 1),
        "max_ms": round(max(taken), 1),
        "cpu_ms": round((server.cpu_ms - before) / samples, 1),
        "kilobytes": len(answer.content) // 1000,
    }


def figures(
    size: int, events: int, queued: int, samples: int, place: Path, only: str = "", most: float = MOST_MS
) -> Figures:
    """All figures, or those of the pages with a word in their names; the ledger is made if it is not there."""
    if not place.exists():
        prepare(place, size, events, queued)
    with Ledger.open(place) as ledger:
        asked = pages(ledger, size, events, queued)
    with server(place) as site, httpx.Client(base_url=site.url, timeout=60) as client:
        rows: list[Figures] = [
            {"page": name} | measure(site, client, page, samples) for name, page in asked.items() if only in name
        ]
    return {
        "assets": size,
        "consumers": size,
        "events": events,
        "queued": queued,
        "slowest_p95_ms": max(row["p95_ms"] for row in rows),
        "slowest_ms": max(row["max_ms"] for row in rows),
        "too_slow": ", ".join(row["page"] for row in rows if row["p95_ms"] > most),
        "pages": rows,
    }


def main() -> int:
    """Measure, and print the figures; return 1 if a page is too slow."""
    options = parser(__doc__)
    options.add_argument("--size", type=int, default=5_000, help="assets, and consumers")
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--queued", type=int, default=100_000, help="events of an asset that wait, and that a run had")
    options.add_argument("--samples", type=int, default=200, help="answers of each page")
    options.add_argument("--ledger", type=Path, help="keep the ledger in this file, and take it from there next time")
    options.add_argument("--only", default="", help="a word in the names of the pages")
    options.add_argument("--most", type=float, default=MOST_MS, help="milliseconds that the 95th percentile may take")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="assetflow-pages-") as folder:
        place = given.ledger or Path(folder) / "ledger.db"
        found = figures(given.size, given.events, given.queued, given.samples, place, given.only, given.most)
    tell(found, as_json=given.json)
    return 1 if found["too_slow"] else 0


if __name__ == "__main__":
    sys.exit(main())
