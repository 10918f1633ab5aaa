"""What watchers cost: a message's way to its run, its CPU time, and a thousand watchers at rest.

Needs RabbitMQ and Redis on this machine, where it makes queues of its own and deletes them.

Figures:
    message_to_run_ms_median: from a message to RabbitMQ to its flow run's row in Prefect, one message at a time.
    cpu_ms_per_message_10k: the CPU time for a message, read and recorded, with 10,000 consumers.
    cost_ratio_to_update: the same by the CPU time for an update of a task in the same ledger.
    watchers_memory_mb, watchers_cpu_percent: of a process with 1,000 watchers, 600 of queues of RabbitMQ, 200 of
        streams of Redis, 150 of files and 50 of Delta tables that are looked at each minute. Nothing happens there.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import aio_pika
from redis import Redis

from assetflow.core.values.assets import Asset
from assetflow.core.values.watchers import AssetWatcher
from assetflow.core.watchers.intake import Message, Watched, intake_of
from assetflow.ledger import Ledger
from assetflow.watchers import DeltaTableTrigger, FileTrigger, MessageQueueTrigger, Trigger
from benchmarks import ring
from benchmarks.latency import installation
from benchmarks.report import Figures, median, parser, quantile, tell
from benchmarks.time import cpu
from tests.watching.outside import RABBIT, REDIS, watch

AT_ONCE = 100
PATIENCE = 120.0
KINDS = {"rabbitmq": 600, "redis": 200, "files": 150, "delta": 50}


def figures(samples: int, consumers: int, messages: int, seconds: float, share: float) -> Figures:
    """Measure everything.

    Parameters:
        samples: messages of the first figure.
        consumers, messages: of the CPU times.
        seconds: how long the watchers at rest are looked at.
        share: the share of the thousand watchers.
    """
    taken = asyncio.run(ways_to_runs(samples))
    update, message = cpu_of_update_and_message(consumers, messages)
    return {
        "message_to_run_ms_median": round(median(taken), 1),
        "message_to_run_ms_p95": round(quantile(taken, 0.95), 1),
        "cpu_ms_per_message_10k": round(message, 3),
        "cost_ratio_to_update": round(message / update, 2),
        **at_rest({kind: round(share * number) for kind, number in KINDS.items()}, seconds),
    }


async def ways_to_runs(samples: int) -> list[float]:
    """Return the milliseconds from messages to their runs."""
    name = f"assetflow-benchmark-{uuid4().hex}"
    with installation() as site:
        trigger = MessageQueueTrigger(RABBIT, queue=name)
        deployment = site.deploy("report", Asset(site.uri("orders"), watchers=[AssetWatcher("orders", trigger)]))
        site.wait_for_consumers()
        environment = {**site.server.env, "ASSETFLOW_HOME": str(site.home), "PREFECT_API_URL": site.server.api_url}
        async with queues([name]) as channel:
            with watcher(environment, site.home, 1):
                return [await way_to_run(site, deployment, channel, name, number) for number in range(samples)]


async def way_to_run(site: Any, deployment: str, channel: Any, name: str, number: int) -> float:
    """Send a message and return the milliseconds until its run was made."""
    sent = datetime.now(UTC)
    message = aio_pika.Message(json.dumps({"number": number}).encode(), message_id=str(number))
    await channel.default_exchange.publish(message, routing_key=name)
    deadline = time.monotonic() + PATIENCE
    while len(runs := site.runs(deployment)) <= number:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    return 1000 * (max(datetime.fromisoformat(run["created"]) for run in runs) - sent).total_seconds()


def cpu_of_update_and_message(consumers: int, messages: int) -> tuple[float, float]:
    """Return the CPU milliseconds for an update of a task and for a message, with so many consumers."""
    assets = ring.assets(consumers)
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
        ring.deploy(ledger, assets)
        # An evaluator at work has updated each asset before.
        before, came = ring.recordings(assets, consumers), ring.recordings(assets, messages, seed=9)
        record(ledger, before)
        update = cpu(lambda: record(ledger, came))
        trigger = MessageQueueTrigger(RABBIT, queue="orders", asset="uri", extra="order")
        watched = Watched("orders", trigger, (Asset("s3://lake/orders"),))
        bodies = [
            json.dumps({"uri": each.events[0].uri, "order": dict(each.events[0].extra)}).encode()
            for each in ring.recordings(assets, messages, seed=10)
        ]
        message = cpu(lambda: take_in(ledger, watched, bodies))
    return 1000 * update / messages, 1000 * message / messages


def record(ledger: Ledger, recordings: Sequence[Any]) -> None:
    for first in range(0, len(recordings), AT_ONCE):
        ledger.writer.events.record(recordings[first : first + AT_ONCE], datetime.now(UTC))


def take_in(ledger: Ledger, watched: Watched, bodies: Sequence[bytes]) -> None:
    """Read and record messages as the process that watches does."""
    for first in range(0, len(bodies), AT_ONCE):
        now = datetime.now(UTC)
        taken = [(Message(body), str(uuid4())) for body in bodies[first : first + AT_ONCE]]
        ledger.writer.watchers.record(intake_of(taken, [watched], "queue", "Queue", now), now)


def at_rest(numbers: dict[str, int], seconds: float) -> Figures:
    """Return the memory and the CPU of a process whose watchers have nothing to do."""
    mark = f"assetflow-benchmark-{uuid4().hex}"
    with TemporaryDirectory() as folder:
        home = Path(folder)
        triggers = list(made(numbers, mark, home))
        with Ledger.open(home / "ledger.db") as ledger:
            for place, trigger in enumerate(triggers):
                watch(ledger, trigger, f"w{place:04}", f"s3://lake/{place:04}")
        return asyncio.run(_at_rest(numbers, mark, home, len(triggers), seconds))


async def _at_rest(numbers: dict[str, int], mark: str, home: Path, count: int, seconds: float) -> Figures:
    environment = {**os.environ, "ASSETFLOW_HOME": str(home), "PREFECT_API_URL": "http://127.0.0.1:1/api"}
    try:
        async with queues([f"{mark}-{place}" for place in range(numbers["rabbitmq"])]):
            with watcher(environment, home, count) as process:
                before, began = cpu_seconds(process.pid), time.monotonic()
                await asyncio.sleep(seconds)
                used = (cpu_seconds(process.pid) - before) / (time.monotonic() - began)
                return {
                    "watchers": count,
                    "watchers_memory_mb": round(memory_mb(process.pid)),
                    "watchers_cpu_percent": round(100 * used, 2),
                }
    finally:
        with Redis.from_url(REDIS) as redis:
            redis.delete(*(f"{mark}-{place}" for place in range(numbers["redis"] + 1)))


def made(numbers: dict[str, int], mark: str, home: Path) -> Iterator[Trigger]:
    """Yield the triggers, and make the folders and tables that they watch."""
    for place in range(numbers["rabbitmq"]):
        yield MessageQueueTrigger(RABBIT, queue=f"{mark}-{place}")
    for place in range(numbers["redis"]):
        yield MessageQueueTrigger(REDIS, stream=f"{mark}-{place}")
    for place in range(numbers["files"]):
        (home / f"in-{place}").mkdir()
        (home / f"in-{place}" / "old.json").write_text("{}")
        yield FileTrigger(f"{home}/in-{place}/*.json")
    for place in range(numbers["delta"]):
        import pyarrow
        from deltalake import write_deltalake

        write_deltalake(f"{home}/table-{place}", pyarrow.table({"number": [place]}))
        yield DeltaTableTrigger(f"{home}/table-{place}", every=timedelta(minutes=1))


@asynccontextmanager
async def queues(names: Sequence[str]) -> AsyncIterator[Any]:
    """Make queues of RabbitMQ for the block."""
    async with await aio_pika.connect(RABBIT) as connection:
        channel = await connection.channel()
        for name in names:
            await channel.declare_queue(name, durable=True)
        try:
            yield channel
        finally:
            for name in names:
                await channel.queue_delete(name)


@contextmanager
def watcher(environment: dict[str, str], home: Path, count: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run the process that watches, and yield it when all watchers work."""
    command = [sys.executable, "-m", "assetflow", "watcher", "start"]
    with (home / "watcher.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + PATIENCE
        with Ledger.open(home / "ledger.db") as ledger:
            while sum(each.state == "watching" for each in ledger.reader.watchers.all()) < count:
                assert time.monotonic() < deadline, (home / "watcher.log").read_text()[-2000:]
                time.sleep(0.2)
        yield process
    finally:
        process.terminate()
        process.wait(60)


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(process: int) -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--samples", type=int, default=200)
    options.add_argument("--consumers", type=int, default=10_000)
    options.add_argument("--messages", type=int, default=5_000)
    options.add_argument("--seconds", type=float, default=120.0)
    options.add_argument("--share", type=float, default=1.0, help="of the thousand watchers")
    given = options.parse_args()
    found = figures(given.samples, given.consumers, given.messages, given.seconds, given.share)
    tell(found, as_json=given.json)
