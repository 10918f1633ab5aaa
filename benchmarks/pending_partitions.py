"""How much 100,000 pending partitions of one consumer slow another: `python -m benchmarks.pending_partitions`.

Prints JSON. The times compare within one run; `ratio` is what counts: 1 means not at all.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import ConditionPart
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger

BIG, NEVER, LEFT, RIGHT = (Asset(f"s3://lake/{name}") for name in ("big", "never", "left", "right"))
BATCH = 2_000
ROUNDS = 200


def recording(asset: Asset, *keys: str) -> Recording:
    now = datetime.now(UTC)
    return Recording(uuid4(), tuple(AssetEvent(uuid4(), asset, now, Origin("api"), partition_key=key) for key in keys))


def deploy(ledger: Ledger, name: str, assets: ConditionPart) -> None:
    options = ConsumerOptions(to_schedule(PartitionedAssetTimetable(assets=assets)))
    text = declaration_to_text(FlowDeclaration(options))
    ledger.writer.consumers.deploy(name, uuid4(), uuid4(), text, False, False, datetime.now(UTC))


def seconds_for_a_run(ledger: Ledger, prefix: str) -> float:
    """The median time of the two updates that make one run of the other consumer."""
    times: list[float] = []
    for number in range(ROUNDS):
        started = time.perf_counter()
        for asset in (LEFT, RIGHT):
            found = ledger.writer.events.record([recording(asset, f"{prefix}-{number}")], datetime.now(UTC))
        times.append(time.perf_counter() - started)
        assert len(found[0][1]) == 1, "the other consumer runs"
    return statistics.median(times)


def measure(pending: int, place: Path) -> dict[str, object]:
    with Ledger.open(place) as ledger:
        deploy(ledger, "waits/for-ever", BIG & NEVER)
        deploy(ledger, "other/one", LEFT & RIGHT)
        before = seconds_for_a_run(ledger, "before")
        started = time.perf_counter()
        for first in range(0, pending, BATCH):
            keys = [f"k{number}" for number in range(first, min(first + BATCH, pending))]
            ledger.writer.events.record([recording(BIG, *keys)], datetime.now(UTC))
        filling = time.perf_counter() - started
        after = seconds_for_a_run(ledger, "after")
        waiting = len(ledger.reader.queues.pending(1))
    return {
        "pending": waiting,
        "partitions_a_second": round(pending / filling),
        "milliseconds_before": round(before * 1000, 2),
        "milliseconds_after": round(after * 1000, 2),
        "ratio": round(after / before, 2),
    }


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pending", type=int, default=100_000)
    with tempfile.TemporaryDirectory() as folder:
        json.dump(measure(parser.parse_args().pending, Path(folder) / "ledger.db"), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
