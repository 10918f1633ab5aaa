"""What a recording costs, counted: it depends on the consumers that want it, not on how many there are.

Counts are the same on a machine that is slow or busy. `benchmarks.second_writer` measures CPU time instead.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from assetflow.core.rules import evaluation, fold
from assetflow.core.values.events import Recording
from assetflow.ledger import Ledger
from benchmarks import instructions, ring
from tests.ledger.making import NOW
from tests.ledger.sql.test_plans import statements

RECORDINGS = 240
BATCH = 60
PER_BATCH = 16
AT_FIRST = 24


@dataclass
class Counts:
    """What was done for all recordings."""

    statements: int = 0
    rows: int = 0
    evaluations: int = 0
    decisions: int = 0


def counted(folder: Path, monkeypatch: pytest.MonkeyPatch, consumers: int) -> Counts:
    """The counts of recordings into so many consumers, on a ledger that has been at work."""
    found = Counts()
    assets = ring.assets(consumers)

    def note(_connection: Any, _cursor: Any, _statement: str, parameters: Any, _context: Any, many: bool) -> None:
        found.statements += 1
        found.rows += len(parameters) if many else 1

    def evaluate(*arguments: Any) -> bool:
        found.evaluations += 1
        return evaluation.evaluate(*arguments)

    with Ledger.open(folder / f"{consumers}.db") as ledger:
        ring.deploy(ledger, assets)
        ledger.writer.events.record(ring.recordings(assets, consumers, seed=0), NOW)
        made = ring.recordings(assets, RECORDINGS)
        event.listen(ledger._engine, "before_cursor_execute", note)
        with monkeypatch.context() as patched:
            patched.setattr(fold, "evaluate", evaluate)
            patched.setattr("assetflow.core.rules.state.state.evaluate", evaluate)
            for first in range(0, RECORDINGS, BATCH):
                done = ledger.writer.events.record(made[first : first + BATCH], NOW)
                found.decisions += sum(len(decisions) for _, decisions in done)
    return found


def test_a_recording_costs_the_same_for_any_number_of_consumers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (counted(tmp_path, monkeypatch, consumers) for consumers in (24, 240))
    assert few.decisions == many.decisions == RECORDINGS
    # Two or three consumers want each asset; a condition is looked at when as many assets are queued as it needs.
    assert few.evaluations == many.evaluations == RECORDINGS
    batches = RECORDINGS / BATCH
    assert few.statements <= many.statements <= PER_BATCH * batches
    # One event, one decision, two or three receipts: written once, or again when they are consumed later, and the
    # queues in short between the two.
    assert 4.5 * RECORDINGS < few.rows <= many.rows < 13 * RECORDINGS


def test_an_evaluator_that_begins_reads_as_seldom(tmp_path: Path) -> None:
    assets = ring.assets(200)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ring.deploy(ledger, assets)
        ledger.writer.events.record(ring.recordings(assets, 150), NOW)
    for number in (20, 300):
        with Ledger.open(tmp_path / "ledger.db") as ledger, statements(ledger) as sent:
            ledger.writer.events.record(ring.recordings(assets, number, seed=number), NOW)
        assert len(sent) <= AT_FIRST


def calls(writers: Sequence[Ledger], recordings: Sequence[Recording]) -> int:
    """Return how many functions are called to record these, each by the next writer in turn."""
    count = 0

    def note(_frame: object, kind: str, _argument: object) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for ledger, recording in zip(cycle(writers), recordings, strict=False):
            ledger.writer.events.record([recording], NOW)
    finally:
        sys.setprofile(before)
    return count


def test_an_update_beside_a_second_writer_costs_at_most_twice_as_much(tmp_path: Path) -> None:
    """The evaluator reads what another process, such as `assetflow emit`, has written, and forgets nothing else."""
    place, assets = tmp_path / "ledger.db", ring.assets(60)
    with Ledger.open(place) as evaluator, Ledger.open(place) as other:
        ring.deploy(evaluator, assets)
        for number, ledger in enumerate((other, evaluator)):
            ledger.writer.events.record(ring.recordings(assets, 60, seed=number), NOW)
        alone = calls([evaluator], ring.recordings(assets, 60, seed=2))
        with statements(evaluator) as sent:
            in_turn = calls([other, evaluator], ring.recordings(assets, 120, seed=3)) / 2
    assert in_turn <= 2 * alone
    assert len(sent) <= 60 * PER_BATCH


def test_the_counted_instructions_are_within_their_limits() -> None:
    """Whoever counts anew and exceeds a limit finds out here; counting takes ten minutes."""
    counted = json.loads((Path(instructions.__file__).parent / "results" / "instructions.json").read_text())
    found = {each["consumers"]: each["instructions"] for each in counted["sizes"]}
    assert found.keys() == instructions.LIMITS.keys()
    assert all(found[consumers] <= limit for consumers, limit in instructions.LIMITS.items())
