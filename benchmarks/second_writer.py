"""What an update costs when another process writes it: `python -m benchmarks.second_writer`.

Tasks' updates are recorded by the evaluator alone. `assetflow emit` and the API write to the same ledger, so that
the evaluator has to read what they wrote before it records the next update. Two open ledgers stand for the two
processes. Each update is a transaction of its own, with its pass, and SQLite writes it durably; CPU time is that of
both. Rounds with one writer and with two take turns on the same ledger.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

from assetflow.core.values.events import Recording
from assetflow.evaluator.process.service import freeze_garbage_collection
from assetflow.ledger import Ledger
from benchmarks import ring
from benchmarks.report import Figures, median, parser, tell


def figures(consumers: int, updates: int, rounds: int) -> Figures:
    """The cost of an update by one writer and by two in turn, and how much more it is with two."""
    assets = ring.assets(consumers)
    alone: list[float] = []
    in_turn: list[float] = []
    with tempfile.TemporaryDirectory(prefix="assetflow-second-writer-") as folder:
        place = Path(folder) / "ledger.db"
        with Ledger.open(place) as evaluator, Ledger.open(place) as other:
            ring.deploy(evaluator, assets)
            for ledger in (evaluator, other):
                _cpu_ms([ledger], ring.recordings(assets, consumers, seed=id(ledger)))
            freeze_garbage_collection()
            for seed in range(rounds):
                alone.append(_cpu_ms([evaluator], ring.recordings(assets, updates, seed=2 * seed)))
                in_turn.append(_cpu_ms([other, evaluator], ring.recordings(assets, updates, seed=2 * seed + 1)))
    return {
        "consumers": consumers,
        "cpu_ms_per_event_alone": round(median(alone), 4),
        "cpu_ms_per_event_in_turn": round(median(in_turn), 4),
        "second_writer_ratio": round(median(b / a for a, b in zip(alone, in_turn, strict=True)), 3),
    }


def _cpu_ms(writers: Iterable[Ledger], recordings: Sequence[Recording]) -> float:
    """CPU time for an update, in ms."""
    began = time.process_time()
    for ledger, recording in zip(cycle(writers), recordings, strict=False):
        ledger.writer.events.record([recording], datetime.now(UTC))
    return 1000 * (time.process_time() - began) / len(recordings)


def main() -> None:
    """Measure, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--consumers", type=int, default=10_000)
    options.add_argument("--updates", type=int, default=2_000, help="updates in each round")
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    tell(figures(given.consumers, given.updates, given.rounds), as_json=given.json)


if __name__ == "__main__":
    main()
