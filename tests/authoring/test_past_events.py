"""Past events: a sequence that reads only what is needed, each once while an evaluator records. Contract 7.2."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from assetflow import Asset, AssetAlias
from assetflow.authoring.past_events import ledger_source, sources
from assetflow.authoring.past_events.ledger_source import PrefectSource, RecordedSource
from assetflow.authoring.past_events.reading import EventSequence, InletEvents, PastEventQuery
from assetflow.authoring.past_events.sources import newest_events, pin_of
from assetflow.authoring.recording import TaskRecording
from assetflow.core.values.announcements import Materialized
from assetflow.core.values.conditions import Token
from assetflow.core.values.events import AssetEvent, Origin, Pin
from assetflow.prefect_io.own_events import materialized
from tests.authoring.events import START, event
from tests.ledger.making import NOW

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


@pytest.mark.rule("7.2")
@pytest.mark.parametrize("limit", [None, 0, 3, 99])
@pytest.mark.parametrize("ascending", [True, False])
def test_slices_are_those_of_a_list(limit: int | None, ascending: bool) -> None:
    listed = list(range(6)) if ascending else list(range(5, -1, -1))
    narrowed = sequence().ascending(ascending)
    if limit is not None:
        listed, narrowed = listed[:limit], narrowed.limit(limit)
    assert [numbers(narrowed[index]) for index in INDICES] == [listed[index] for index in INDICES]
    assert len(narrowed) == len(listed)
    assert numbers(narrowed) == listed


@pytest.mark.rule("7.2")
@pytest.mark.parametrize(("index", "rows"), [(-1, 1), (0, 1), (slice(-2, None), 2), (slice(0, 3), 3)])
def test_only_the_events_asked_for_are_read(index: Any, rows: int) -> None:
    source = Listed(10_000)
    assert EventSequence(source, PastEventQuery(A.token))[index]
    assert source.read == rows


@pytest.mark.rule("7.2")
def test_only_declared_inlets_are_read() -> None:
    inlets = InletEvents([A, AssetAlias("x")], lambda: Listed(1))
    assert len(inlets[A]) == len(inlets[AssetAlias("x")]) == len(inlets[Asset.ref(name="a")]) == 1
    for other in (Asset("s3://b/other"), AssetAlias("y"), Asset.ref(name="b"), AssetAlias("a")):
        with pytest.raises(KeyError, match="inlets="):
            inlets[other]


def pinned(source: Listed, number: int) -> EventSequence:
    pin = Pin(number, UUID(int=number), START)
    return EventSequence(source, PastEventQuery(A.token), pin=lambda: pin)


@pytest.mark.parametrize("number", [0, 3, 59])
def test_rule_8_2_the_version_is_the_one_that_was_pinned_however_many_updates_follow(number: int) -> None:
    source = Listed(60)
    source.events[number] = replace(source.events[number], data_version="etag")
    events = pinned(source, number)
    narrow = events.after(START + timedelta(hours=50)).limit(1).ascending(False)
    assert (events.version, narrow.version) == ("etag", "etag")


class Known:
    """A ledger that knows one asset by its name."""

    def owner_of(self, name: str) -> str | None:
        return A.uri if name == "a" else None

    def newest_events(self, uris: Sequence[str]) -> dict[str, Pin]:
        return {uri: Pin(number, UUID(int=number), START) for number, uri in enumerate(uris, 1)}


def test_rule_8_2_inlets_by_name_are_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_ledger", Known)
    other, unknown = Asset("s3://b/other"), Asset.ref(name="unknown")
    pins = newest_events([other, Asset.ref(name="a"), unknown, AssetAlias("x")])
    assert {uri: pin.sequence for uri, pin in pins.items()} == {other.uri: 1, A.uri: 2}
    assert newest_events([unknown]) == {}
    with TaskRecording([], "", 1, inputs=pins).active():
        assert [pin_of(each) for each in (A, Asset.ref(name="a"), Asset.ref(uri=A.uri))] == [pins[A.uri]] * 3
        assert [pin_of(each) for each in (unknown, AssetAlias("x"), Asset("s3://b/new"))] == [None] * 3
    assert pin_of(A) is None


QUERY = PastEventQuery(Token("uri", "a"))


def update(number: int) -> AssetEvent:
    return AssetEvent(UUID(int=number), Asset("a"), NOW + timedelta(seconds=number), Origin("task"))


class World:
    """A ledger, Prefect's artifacts, and an evaluator that records when the ledger is asked.

    Attributes:
        meanwhile: how many events the evaluator records before each answer to a question, by the name of the method.
    """

    def __init__(self, recorded: int, committed: int) -> None:
        self.committed = [update(number) for number in range(1, committed + 1)]
        self.recorded = recorded
        self.empty_pages = 0
        self.meanwhile: dict[str, int] = {}

    def created(self) -> datetime:
        return NOW

    def count(self, query: PastEventQuery) -> int:  # noqa: ARG002
        self._asked("count")
        return self.recorded

    def events(self, query: PastEventQuery, skip: int, take: int, *, newest_first: bool) -> Sequence[AssetEvent]:  # noqa: ARG002
        self._asked("events")
        found = self.committed[: self.recorded]
        return (found[::-1] if newest_first else found)[skip : skip + take]

    def known(self, ids: Sequence[UUID]) -> Collection[UUID]:
        self._asked("known")
        return {event.id for event in self.committed[: self.recorded]} & set(ids)

    def artifact_pages(self) -> Iterator[list[tuple[datetime, AssetEvent]]]:
        yield from ([] for _ in range(self.empty_pages))
        yield [(event.occurred, event) for event in reversed(self.committed)]

    def pages(self, token: Token, since: datetime) -> Sequence[Iterator[list[tuple[datetime, AssetEvent]]]]:  # noqa: ARG002
        return [self.artifact_pages(), iter([[]])]

    def _asked(self, method: str) -> None:
        self.recorded = min(len(self.committed), self.recorded + self.meanwhile.get(method, 0))


@pytest.fixture
def open_source(monkeypatch: pytest.MonkeyPatch) -> Callable[[World], RecordedSource]:
    def opened(world: World) -> RecordedSource:
        monkeypatch.setattr(ledger_source, "pages_in_prefect", world.pages)
        return RecordedSource(cast(Any, world))

    return opened


@pytest.mark.parametrize("asked", [{}, {"known": 1}, {"events": 1}, {"known": 2}, {"events": 1, "known": 1}])
def test_what_is_recorded_meanwhile_is_seen_once(
    open_source: Callable[[World], RecordedSource], asked: dict[str, int]
) -> None:
    for read in (RecordedSource.oldest, RecordedSource.newest):
        world = World(2, 5)
        world.meanwhile = asked
        found = sorted(event.id.int for event in read(open_source(world), QUERY, 0, 20))
        assert found == [1, 2, 3, 4, 5]


def test_rule_2_10_without_a_ledger_a_copy_that_an_evaluator_posted_is_no_past_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = replace(update(1), asset=Asset("s3://b/a"))
    (copy,) = materialized(Materialized(1, ours, ()))
    plain = {**copy, "id": str(UUID(int=2)), "resource": {"prefect.resource.id": "s3://b/a"}}
    answers = {"/artifacts/filter": [], "/events/filter": {"events": [copy, plain], "next_page": None}}
    monkeypatch.setattr(ledger_source, "_post", lambda path, _: answers[path])
    found = PrefectSource().newest(PastEventQuery(Token("uri", "s3://b/a")), 0, 9)
    assert [event.id.int for event in found] == [2]
