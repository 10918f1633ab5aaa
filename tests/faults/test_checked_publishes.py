"""Data that fails a check is never seen, and the old data never lost, while the publishing process is killed.

`TEST_PUBLISHES=500 TEST_READS=20000` is the long version. Spark's own Delta writer is not run: `deltalake` commits.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pyarrow
import pyarrow.parquet
import pytest
from deltalake import DeltaTable

from tests.environment.waiting import until
from tests.faults.checked_publisher import BAD_EVERY, ROWS
from tests.faults.world import ROOT

PUBLISHES = int(os.environ.get("TEST_PUBLISHES", "25"))
READS = int(os.environ.get("TEST_READS", "1000"))
pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.timeout(600 + 60 * PUBLISHES)]


@pytest.mark.failure(
    "Spark",
    "the process is killed in the middle of publishing with checks, of which each fifth publication fails",
    "no read sees refused data, no refused data is in a recording, the old data is never lost; `TEST_PUBLISHES=500 "
    "TEST_READS=20000` is the long form",
)
def test_no_read_sees_refused_data_and_none_is_lost(tmp_path: Path) -> None:
    notes, dice, over = tmp_path / "notes", random.Random(44), Event()
    readers = [Reader(place, rows, read) for place, rows, read in places(tmp_path)]
    threads = [Thread(target=reader.run, args=(over,)) for reader in readers]
    for thread in threads:
        thread.start()
    kills = 0
    try:
        while done(notes) < PUBLISHES:
            live_and_die(tmp_path, kills, dice)
            kills += 1
        until(lambda: sum(reader.reads for reader in readers) >= READS, seconds=600)
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    wrong = {reader.place: reader.wrong for reader in readers if reader.wrong}
    assert not wrong
    assert all(reader.reads for reader in readers)
    told = f"{sum(reader.reads for reader in readers)} reads during {done(notes)} publications and {kills} kills"
    print(f"{told}, {done(notes) // BAD_EVERY} held back, 0 refused rows seen, 0 datasets lost")  # noqa: T201


def places(lake: Path) -> list[tuple[Path, int, Callable[[Path], pyarrow.Table]]]:
    """Each place that is read, with its number of rows, and how it is read: in the version that is current."""
    halves = [(lake / "keyed" / f"key={half}", ROWS // 2, parquet) for half in ("a", "b")]
    return [(lake / "whole", ROWS, parquet), *halves, (lake / "delta", ROWS, delta)]


def parquet(place: Path) -> pyarrow.Table:
    files = sorted(place.resolve().glob("*.parquet"))
    return pyarrow.concat_tables([pyarrow.parquet.ParquetFile(file).read() for file in files])


def delta(place: Path) -> pyarrow.Table:
    return DeltaTable(place).to_pyarrow_table()


class Reader:
    """Reads one place again and again, and notes each read that should not be."""

    def __init__(self, place: Path, rows: int, read: Callable[[Path], pyarrow.Table]) -> None:
        self.place, self.rows, self._read = place, rows, read
        self.reads, self.wrong = 0, Counter[str]()
        self._last = -1

    def run(self, over: Event) -> None:
        while not over.is_set():
            time.sleep(0.05)
            if self._last < 0 and not (self.place.exists() and has_begun(self.place)):
                continue
            try:
                self.look()
            except Exception as error:
                self.wrong[repr(error)[:300]] += 1

    def look(self) -> None:
        table = self._read(self.place)
        self.reads += 1
        numbers, refused = (set(table.column(name).to_pylist()) for name in ("number", "refused"))
        if (len(numbers), table.num_rows, refused) != (1, self.rows, {0}):
            self.wrong[f"{table.num_rows} rows of {numbers}, refused {refused}"] += 1
        number = max(numbers, default=-1)
        if number % BAD_EVERY == BAD_EVERY - 1 or number < self._last:
            self.wrong[f"{number} after {self._last}"] += 1
        self._last = number


def has_begun(place: Path) -> bool:
    return place.name != "delta" or DeltaTable.is_deltatable(str(place))


def done(notes: Path) -> int:
    return len(notes.read_text().splitlines()) if notes.exists() else 0


def live_and_die(lake: Path, life: int, dice: random.Random) -> None:
    """Publish once or more, and be killed with the JVM in the middle of the next time."""
    log, before = lake / "publisher.log", done(lake / "notes")
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.checked_publisher", str(lake), str(life)],
            cwd=ROOT,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    wanted = min(before + dice.randint(1, 20), PUBLISHES)
    until(lambda: done(lake / "notes") >= wanted or process.poll() is not None, seconds=600)
    assert process.poll() is None, log.read_text()[-3000:]
    time.sleep(dice.uniform(0, 2))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
