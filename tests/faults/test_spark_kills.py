"""The process that publishes with Spark is killed again and again: readers never see half, retries never double."""

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

# `read_table` would import it in the first read: on a busy machine, that takes longer than three publications.
import pyarrow.dataset
import pyarrow.parquet
import pytest

from tests.environment.waiting import until
from tests.faults.world import ROOT

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.timeout(1800)]

KILLS = 20
READS = 1_000
SCRIPT = Path(__file__).with_name("publisher.py")


class Publisher:
    """The publishing process, killed with its JVM."""

    def __init__(self, lake: Path) -> None:
        self.state, self.rows, self.notes = lake / "state", lake / "rows", lake / "notes"
        self._log = lake / "publisher.log"
        self._lives = 0

    def start(self, crash_at: str = "") -> subprocess.Popen[bytes]:
        self._lives += 1
        arguments = [f"file://{self.state}", f"file://{self.rows}", str(self.notes), str(self._lives)]
        env = os.environ | {"PYTHONPATH": str(ROOT), "ASSETFLOW_CRASH_AT": crash_at}
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, str(SCRIPT), *arguments], env=env, stdout=log, stderr=log, start_new_session=True
            )

    def live_and_die(self, dice: random.Random) -> None:
        """Publish once or more, and be killed in the middle of the next time."""
        process = self.start()
        before = self.done
        self._until(lambda: self.done > before, process)
        time.sleep(dice.uniform(0, 2))
        self._kill(process)

    def live_and_crash(self) -> None:
        """Be killed just before the swap."""
        process = self.start(crash_at="between-staging-and-swap")
        assert process.wait(180) == -signal.SIGKILL, self._log.read_text()[-3000:]
        self._kill(process)

    @property
    def done(self) -> int:
        return len(self.notes.read_text().splitlines()) if self.notes.exists() else 0

    def _until(self, condition: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float = 180) -> None:
        until(lambda: condition() or process.poll() is not None, seconds=seconds)
        assert process.poll() is None, self._log.read_text()[-3000:]

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.failure(
    "Spark",
    "the process is killed in the middle of publishing to a local path",
    "in 1,000 reads during 20 kills, readers see the complete old data; a retry never doubles rows, not even an append",
)
def test_readers_never_see_half_and_retries_never_double(tmp_path: Path) -> None:
    publisher, dice = Publisher(tmp_path), random.Random(3)
    seen: Counter[tuple[int, int]] = Counter()
    over = Event()

    def look() -> None:
        while not over.is_set():
            if not publisher.state.exists():
                time.sleep(0.05)
                continue
            # As `assetflow.read` does: the version that is current now, whatever comes meanwhile.
            numbers = pyarrow.parquet.read_table(publisher.state.resolve()).column("id").to_pylist()
            seen[len(numbers), len(set(numbers))] += 1
            time.sleep(0.05)

    reader = Thread(target=look)
    reader.start()
    try:
        for kill in range(KILLS):
            if kill % 5 == 4:
                publisher.live_and_crash()
            else:
                publisher.live_and_die(dice)
        until(lambda: sum(seen.values()) >= READS or not reader.is_alive(), seconds=300)
    finally:
        over.set()
        reader.join(30)
    assert set(seen) == {(100, 1)}
    assert sum(seen.values()) >= READS
    rows = Counter(pyarrow.parquet.read_table(publisher.rows.resolve()).column("id").to_pylist())
    assert set(rows.values()) == {10}
    assert set(rows) >= set(range(publisher.done))
    print(f"{sum(seen.values())} reads during {KILLS} kills, {publisher.done} publications, 0 halves, 0 doubled")  # noqa: T201
