"""Past events are seen once each, also while an evaluator records what is committed. Contract 7.2."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from assetflow.authoring.past_events import ledger_source
from assetflow.authoring.past_events.ledger_source import PrefectSource, RecordedSource
from assetflow.authoring.past_events.reading import PastEventQuery
from assetflow.core.values.announcements import Materialized
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Token
from assetflow.core.values.events import AssetEvent, Origin, Pin
from assetflow.prefect_io.own_events import materialized
from tests.ledger.making import NOW

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

    def newest_events(self, uris: Iterable[str]) -> Mapping[str, Pin]:  # noqa: ARG002
        return {}

    def owner_of(self, name: str) -> str | None:  # noqa: ARG002
        return None

    def artifact_pages(self) -> Iterator[list[tuple[datetime, AssetEvent]]]:
        yield from ([] for _ in range(self.empty_pages))
        yield [(event.occurred, event) for event in reversed(self.committed)]

    def event_pages(self, token: Token) -> Iterator[list[tuple[datetime, AssetEvent]]]:  # noqa: ARG002
        yield []

    def _asked(self, method: str) -> None:
        self.recorded = min(len(self.committed), self.recorded + self.meanwhile.get(method, 0))


@pytest.fixture
def open_source(monkeypatch: pytest.MonkeyPatch) -> Callable[[World], RecordedSource]:
    def opened(world: World) -> RecordedSource:
        monkeypatch.setattr(ledger_source, "PrefectLog", lambda since: world)  # noqa: ARG005
        return RecordedSource(world)

    return opened


@pytest.mark.parametrize("asked", [{}, {"known": 1}, {"events": 1}, {"known": 2}, {"events": 1, "known": 1}])
def test_what_is_recorded_while_it_is_read_is_seen_once(
    open_source: Callable[[World], RecordedSource], asked: dict[str, int]
) -> None:
    for read in (RecordedSource.oldest, RecordedSource.newest):
        world = World(2, 5)
        world.meanwhile = asked
        found = sorted(event.id.int for event in read(open_source(world), QUERY, 0, 20))
        assert found == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("recorded_then", [2, 3, 4, 5])
def test_pages_go_on_where_the_last_one_ended_though_more_is_recorded_by_then(
    open_source: Callable[[World], RecordedSource], recorded_then: int
) -> None:
    world = World(2, 5)
    source = open_source(world)
    assert [event.id.int for event in source.oldest(QUERY, 0, 4)] == [1, 2, 3, 4]
    world.recorded = recorded_then
    assert [event.id.int for event in source.oldest(QUERY, 4, 4)] == [5]
    assert [event.id.int for event in source.newest(QUERY, 1, 2)] == [4, 3]


@pytest.mark.parametrize("asked", [{}, {"count": 1}, {"known": 1}])
def test_each_is_counted_once(open_source: Callable[[World], RecordedSource], asked: dict[str, int]) -> None:
    world = World(2, 5)
    world.meanwhile = asked
    assert open_source(world).count(QUERY) == 5


def test_a_page_of_artifacts_without_updates_hides_no_older_ones(
    open_source: Callable[[World], RecordedSource],
) -> None:
    world = World(2, 5)
    world.empty_pages = 2
    assert [event.id.int for event in open_source(world).newest(QUERY, 0, 1)] == [5]


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
