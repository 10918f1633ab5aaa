"""How long `assetflow diff --replay` takes: `python -m benchmarks.replay`.

500 consumers, each of two of 250 assets, 100,000 events over seven days; 20 of the consumers get a `within`. Rule 11.6
promises at most 10 s and 500 MB.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from uuid import uuid4

from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Condition
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.core.wire.deployments import Deployed
from assetflow.ledger import Ledger
from assetflow.ledger.read.reader import Reader
from assetflow.stack.flow_files import Plan
from assetflow.stack.linting import diff

ASSETS = [Asset(f"s3://lake/{number}") for number in range(250)]
BATCH = 1_000
SPAN = timedelta(days=7)


def declaration(number: int, *, changed: bool = False) -> FlowDeclaration:
    condition: Condition = ASSETS[number % 250] & ASSETS[(number * 7 + 1) % 250]
    return FlowDeclaration(ConsumerOptions(Schedule(condition.within(timedelta(hours=1)) if changed else condition)))


def fill(place: Path, events: int, consumers: int) -> None:
    """Make a ledger with what has happened."""
    begins, random = datetime.now(UTC) - SPAN, Random(1)
    with Ledger.open(place, now=begins - SPAN) as ledger:
        for number in range(consumers):
            text = declaration_to_text(declaration(number))
            ledger.writer.consumers.deploy(f"flow{number}/one", uuid4(), uuid4(), text, False, False, begins)
        for first in range(0, events, BATCH):
            at = begins + SPAN * (first + 1) / (events + BATCH)
            made = (AssetEvent(uuid4(), random.choice(ASSETS), at, Origin("api")) for _ in range(BATCH))
            ledger.writer.events.record([Recording(uuid4(), (event,)) for event in made], at)


def measure(place: Path, consumers: int, differ: int) -> dict[str, float]:
    """Return how long the comparison with its replay takes, and the memory of this process."""
    now = datetime.now(UTC)
    wanted = [Deployed.of(f"flow{n}/one", declaration(n, changed=n < differ), now) for n in range(consumers)]
    started, busy = time.perf_counter(), time.process_time()
    with Reader.open(place) as reader:
        found = diff(reader, Plan(wanted), reader.comparing.deployed(), now, now - SPAN)
    seconds = time.perf_counter() - started
    replayed = found.replayed or ()
    assert len(replayed) == differ
    return {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(time.process_time() - busy, 2),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "runs_before": sum(each.before for each in replayed),
        "runs_after": sum(each.after for each in replayed),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--consumers", type=int, default=500)
    parser.add_argument("--differ", type=int, default=20)
    parser.add_argument("--ledger", type=Path, help="measure this ledger, in this process")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args()
    if given.ledger is not None:
        found = measure(given.ledger, given.consumers, given.differ)
        lines = [json.dumps(found)] if given.json else [f"{value:>10,} {name}" for name, value in found.items()]
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "ledger.db"
        fill(place, given.events, given.consumers)
        options = ["--consumers", str(given.consumers), "--differ", str(given.differ), "--ledger", str(place)]
        options += ["--json"] if given.json else []
        subprocess.run([sys.executable, "-m", "benchmarks.replay", *options], check=True)


if __name__ == "__main__":
    main()
