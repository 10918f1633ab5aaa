"""What a recording costs, counted: it depends on the consumers that want it, not on how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from assetflow.core.rules import evaluation, fold
from assetflow.ledger import Ledger
from benchmarks import ring
from tests.ledger.making import NOW
from tests.ledger.test_plans import statements

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
            patched.setattr("assetflow.core.rules.state.prefetch.evaluate", evaluate)
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


def test_statements_for_a_batch_do_not_grow_with_it(tmp_path: Path) -> None:
    assets = ring.assets(200)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ring.deploy(ledger, assets)
        made = ring.recordings(assets, 600)
        ledger.writer.events.record(made[:200], NOW)
        for first, last in ((200, 220), (220, 300), (300, 600)):
            with statements(ledger) as sent:
                ledger.writer.events.record(made[first:last], NOW)
            assert len(sent) <= PER_BATCH
