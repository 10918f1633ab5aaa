"""`inlet_events`: a sequence that behaves like a list and reads only what is needed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from assetflow import Asset, AssetAlias
from assetflow.authoring.past_events.reading import EventSequence, InletEvents, PastEventQuery
from assetflow.core.events import AssetEvent
from assetflow.errors import InvalidEvent
from tests.authoring.events import START, event

A = Asset("s3://b/a", name="a")


class Listed:
    """A source that counts the events that are read."""

    def __init__(self, count: int) -> None:
        self.events = [event(number) for number in range(count)]
        self.read = 0

    def _matching(self, query: PastEventQuery) -> list[AssetEvent]:
        return [
            each
            for each in self.events
            if (query.after is None or each.occurred > query.after)
            and (query.before is None or each.occurred < query.before)
        ]

    def count(self, query: PastEventQuery) -> int:
        return len(self._matching(query))

    def oldest(self, query: PastEventQuery, skip: int, take: int) -> Sequence[AssetEvent]:
        found = self._matching(query)[skip : skip + take]
        self.read += len(found)
        return found

    def newest(self, query: PastEventQuery, skip: int, take: int) -> Sequence[AssetEvent]:
        found = self._matching(query)[::-1][skip : skip + take]
        self.read += len(found)
        return found


def sequence(count: int = 6) -> EventSequence:
    return EventSequence(Listed(count), PastEventQuery(A.token))


def numbers(events: Any) -> list[object]:
    return [each.extra["number"] for each in events]


INDICES = [
    slice(*each) for each in [(None,), (-2, None), (2,), (1, 4), (None, None, 2), (-5, -1), (4, 2), (3, 99), (0, 0)]
]
INDICES += [slice(-2, None, None), slice(None, None, -1), slice(2, None), slice(-99, None)]


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("limit", [None, 0, 3, 99])
@pytest.mark.parametrize("ascending", [True, False])
def test_slices_are_those_of_a_list(index: slice, limit: int | None, ascending: bool) -> None:
    listed = list(range(6)) if ascending else list(range(5, -1, -1))
    narrowed = sequence().ascending(ascending)
    if limit is not None:
        listed, narrowed = listed[:limit], narrowed.limit(limit)
    assert numbers(narrowed[index]) == listed[index]
    assert len(narrowed) == len(listed)
    assert numbers(narrowed) == listed


@pytest.mark.parametrize("index", [*range(-7, 7)])
@pytest.mark.parametrize("limit", [None, 2])
def test_an_index_is_that_of_a_list(index: int, limit: int | None) -> None:
    listed = list(range(6))[:limit]
    narrowed = sequence() if limit is None else sequence().limit(limit)
    try:
        expected = listed[index]
    except IndexError:
        with pytest.raises(IndexError):
            narrowed[index]
    else:
        assert narrowed[index].extra["number"] == expected


@pytest.mark.parametrize(("index", "rows"), [(-1, 1), (0, 1), (slice(-2, None), 2), (slice(0, 3), 3)])
def test_only_the_events_asked_for_are_read(index: Any, rows: int) -> None:
    source = Listed(10_000)
    assert EventSequence(source, PastEventQuery(A.token))[index]
    assert source.read == rows


def test_after_and_before_narrow_the_sequence() -> None:
    events = sequence().after(START + timedelta(hours=1)).before("2026-01-01T04:00:00Z")
    assert numbers(events) == [2, 3]
    assert numbers(events.ascending(False).limit(1)) == [3]


@pytest.mark.parametrize("moment", ["yesterday", "2026-01-01T00:00:00"])
def test_a_text_that_is_not_a_time_is_refused(moment: str) -> None:
    with pytest.raises(InvalidEvent, match="time"):
        sequence().after(moment)


def test_only_declared_inlets_are_read() -> None:
    inlets = InletEvents([A, AssetAlias("x")], lambda: Listed(1))
    assert len(inlets[A]) == len(inlets[AssetAlias("x")]) == len(inlets[Asset.ref(name="a")]) == 1
    for other in (Asset("s3://b/other"), AssetAlias("y"), Asset.ref(name="b"), AssetAlias("a")):
        with pytest.raises(KeyError, match="inlets="):
            inlets[other]
