"""Counts of the partition keys of an asset in parts of their range."""

from __future__ import annotations

from assetflow.ledger import Ledger
from tests.ledger.making import NOW, A, B, event, recording

KEYS = [f"2026-01-{day:02}" for day in (1, 2, 3, 9, 20, 31)]


def test_keys_are_counted_between_neighbours_and_from_the_last_one_on(ledger: Ledger) -> None:
    twice = [event(A, partition_key=key) for key in [*KEYS, *KEYS]]
    others = [event(A), event(B, partition_key="2026-01-05")]
    ledger.writer.events.record([recording(*twice, *others)], NOW)
    count = ledger.reader.partitions.counts_from

    assert count(A.uri, ["2026-01-01", "2026-01-03", "2026-01-10", "2026-01-15", "2026-01-20"]) == [2, 2, 0, 0, 2]
    assert count(A.uri, ["2026-01-02", "2026-02-01"]) == [5, 0]
    assert count("s3://lake/nothing", ["2026-01-02", "2026-02-01"]) == [0, 0]
