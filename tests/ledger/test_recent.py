"""The events that are kept in memory: those of late, and no more than fit."""

from __future__ import annotations

from time import process_time

from assetflow.core.events import AssetEvent
from assetflow.ledger.recent import RecentEvents
from tests.ledger.making import NOW, A, event


def recorded(first: int, number: int) -> list[AssetEvent]:
    one = event(A)
    return [one.in_ledger(sequence, NOW) for sequence in range(first, first + number)]


def test_those_that_were_kept_longest_make_room() -> None:
    recent = RecentEvents(3)
    recent.keep(recorded(1, 2))
    recent.keep(recorded(3, 2))

    assert list(recent.among([1, 2, 3, 4, 5])) == [2, 3, 4]


def test_making_room_among_many_costs_what_it_costs_among_few() -> None:
    def seconds(size: int) -> float:
        recent, events = RecentEvents(size), recorded(1, 3 * size)
        recent.keep(events[:size])
        before = process_time()
        for start in range(size, 3 * size, 100):
            recent.keep(events[start : start + 100])
        return (process_time() - before) / size

    seconds(1_000)
    assert min(seconds(40_000) for _ in range(3)) < 8 * min(seconds(1_000) for _ in range(3))
