"""The ledger and the book in memory are twins: the same steps lead to the same state, in whatever batches they come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assetflow.core import registry
from assetflow.core.assets import Asset, AssetAlias
from assetflow.core.codec import declaration_from_text
from assetflow.core.consumers import Consumer, Decision
from assetflow.core.events import AssetEvent, Origin, Recording
from assetflow.core.fold import evaluate_consumer, record_and_pass
from assetflow.core.memory_book import MemoryBook
from assetflow.core.partitions import DayWindow, IdentityMapper, RollupMapper, StartOfDayMapper, StartOfHourMapper
from assetflow.core.schedules import PartitionedAssetTimetable
from assetflow.errors import NameTaken
from assetflow.ledger import Ledger
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW, declared

SPACE = UUID(int=7)
ASSETS = [
    Asset("s3://lake/a"),
    Asset("s3://lake/b", name="bee"),
    Asset("s3://lake/c"),
    Asset("s3://lake/d", name="bee"),
]
A, B, C, _ = ASSETS
X, Y = AssetAlias("x"), AssetAlias("y")
HOURLY = RollupMapper(upstream_mapper=StartOfHourMapper(), window=DayWindow())
SCHEDULES = [
    A & B,
    A | C,
    (A & X) | Y,
    X & C,
    Asset.ref(name="bee") & A,
    Asset.ref(uri="s3://lake/c") | X,
    PartitionedAssetTimetable(assets=A & B, default_partition_mapper=IdentityMapper()),
    PartitionedAssetTimetable(assets=A & X, default_partition_mapper=StartOfDayMapper()),
    PartitionedAssetTimetable(assets=A, default_partition_mapper=HOURLY),
]
KEYS = [None, None, "2026-01-01T01:00:00", "2026-01-01T02:00:00", "2026-01-02T01:00:00", "no time"]
NAMES = ["f/one", "f/two", "f/three"]

events = st.fixed_dictionaries(
    {
        "number": st.integers(0, 60),
        "asset": st.sampled_from(ASSETS),
        "key": st.sampled_from(KEYS),
        "aliases": st.sampled_from([(), (), ("x",), ("x", "y")]),
    }
)
recordings = st.tuples(st.integers(0, 30), st.lists(events, min_size=1, max_size=3))
declarations = st.builds(
    lambda schedule, keep, coalesce: declared(schedule, while_paused="keep" if keep else "drop", coalesce=coalesce),
    st.sampled_from(SCHEDULES),
    st.booleans(),
    st.booleans(),
)
names = st.sampled_from(NAMES)
steps = st.one_of(
    st.tuples(st.just("record"), st.lists(recordings, min_size=1, max_size=4)),
    st.tuples(st.just("record"), st.lists(recordings, min_size=1, max_size=4)),
    st.tuples(st.just("deploy"), names, declarations),
    st.tuples(st.just("change"), names, declarations),
    st.tuples(st.just("pause"), names, st.booleans()),
    st.tuples(st.just("hold"), names, st.booleans()),
    st.tuples(st.just("remove"), names),
    st.tuples(st.just("remove_queued"), names, st.sampled_from([None, *ASSETS]), st.sampled_from(KEYS)),
    st.tuples(st.just("end"), st.integers(0, 5)),
)


def to_recording(number: int, drawn: Sequence[dict[str, Any]]) -> Recording:
    made = tuple(
        AssetEvent(
            uuid5(SPACE, f"event {each['number']}"),
            each["asset"],
            NOW,
            Origin("api"),
            partition_key=each["key"],
            aliases=each["aliases"],
        )
        for each in drawn
    )
    return Recording(uuid5(SPACE, f"recording {number}"), made)


@dataclass
class Twins:
    """Carries out each step on both, and compares the decisions that it leads to."""

    ledger: Ledger
    book: MemoryBook = field(default_factory=MemoryBook)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    deployed: int = 0
    now: Any = NOW

    def step(self, kind: str, *arguments: Any) -> None:
        self.now += timedelta(seconds=1)
        getattr(self, kind)(*arguments)

    def record(self, drawn: list[tuple[int, list[dict[str, Any]]]]) -> None:
        batch = [to_recording(number, each) for number, each in drawn]
        mine = [record_and_pass(self.book, each, self.now) for each in batch]
        theirs = self.ledger.writer.record(batch, self.now)
        for (recorded, decisions), (their_recorded, their_decisions) in zip(mine, theirs, strict=True):
            assert [e.sequence for e in their_recorded.events] == [e.sequence for e in recorded.events]
            assert their_recorded.new_assets == recorded.new_assets
            assert their_recorded.warnings == recorded.warnings
            same(their_decisions, decisions)

    def deploy(self, name: str, text: str) -> None:
        if name in self.consumers:
            return
        deployment_id = uuid5(SPACE, f"deployment {self.deployed}")
        consumer = Consumer(self.deployed + 1, name, deployment_id, declaration_from_text(text).options)
        try:
            registry.deploy(self.book, consumer)
        except NameTaken:
            with pytest.raises(NameTaken):
                self.ledger.writer.deploy(name, deployment_id, None, text, False, False, self.now)
            return
        self.deployed += 1
        self.consumers[name] = consumer
        decisions = registry.pass_over_consumer(self.book, consumer, self.now)
        theirs, their_decisions = self.ledger.writer.deploy(name, deployment_id, None, text, False, False, self.now)
        assert theirs == consumer
        same(their_decisions, decisions)

    def change(self, name: str, text: str) -> None:
        consumer = self.consumers.get(name)
        if consumer is None:
            return
        try:
            changed = registry.change(self.book, consumer, declaration_from_text(text).options)
        except NameTaken:
            with pytest.raises(NameTaken):
                self.ledger.writer.change(consumer.id, text, self.now)
            return
        self.consumers[name] = changed
        decisions = registry.pass_over_consumer(self.book, changed, self.now)
        theirs, their_decisions = self.ledger.writer.change(consumer.id, text, self.now)
        assert theirs == changed
        same(their_decisions, decisions)

    def pause(self, name: str, on: bool) -> None:
        self._switch(name, "paused", on)

    def hold(self, name: str, on: bool) -> None:
        self._switch(name, "held", on)

    def _switch(self, name: str, which: str, on: bool) -> None:
        consumer = self.consumers.get(name)
        if consumer is None:
            return
        self.consumers[name] = changed = registry.switch(self.book, consumer, **{which: on})
        freed = getattr(consumer, which) and not on
        decisions = registry.pass_over_consumer(self.book, changed, self.now) if freed else []
        theirs, their_decisions = self.ledger.writer.switch(consumer.id, **{which: on}, now=self.now)
        assert theirs == changed
        same(their_decisions, decisions)

    def remove(self, name: str) -> None:
        consumer = self.consumers.pop(name, None)
        if consumer is not None:
            registry.remove(self.book, consumer)
            self.ledger.writer.remove(consumer.id, self.now)

    def remove_queued(self, name: str, asset: Asset | None, key: str | None) -> None:
        consumer = self.consumers.get(name)
        if consumer is not None:
            uri = None if asset is None else asset.uri
            mine = registry.remove_queued(self.book, consumer, lambda e: uri in (None, e.uri), [key], by="me", why="so")
            theirs = self.ledger.writer.remove_queued(
                consumer.id, uri=uri, target_key=key, by="me", why="so", now=self.now
            )
            assert theirs == mine

    def end(self, index: int) -> None:
        running = [d for d in self.book.decisions if d.id in self.book.running.get((d.consumer, d.target_key), ())]
        if not running:
            return
        decision = running[index % len(running)]
        self.book.running[decision.consumer, decision.target_key].discard(decision.id)
        consumer = self.book.consumers.get(decision.consumer)
        expected: list[Decision] = []
        if consumer is not None and consumer.options.coalesce:
            expected = evaluate_consumer(self.book, consumer, [decision.target_key], self.now)
        found = self.ledger.writer.ended("Completed", self.now, decision_id=decision.id)
        assert found is not None
        same(found, expected)

    def compare(self) -> None:
        """All that is written is the same."""
        reader = self.ledger.reader
        stored = reader.events()
        assert [(e.sequence, e.id, e.asset.name, e.partition_key, e.aliases) for e in stored] == [
            (e.sequence, e.id, e.asset.name, e.partition_key, e.aliases) for e in self.book.events
        ]
        receipts = {
            (r.receipt.event, r.receipt.consumer, r.receipt.target_key): r.receipt
            for each in stored
            for r in reader.receipts(each.id)
        }
        assert receipts == self.book.receipts
        made = list(reversed(reader.decisions(limit=1000)))
        assert [d.id for d in made] == [d.id for d in self.book.decisions]
        assert list(reader.events_of(made).values()) == [d.events for d in self.book.decisions]
        assert [record.consumer for record in reader.consumers()] == list(self.book.consumers.values())
        for consumer in self.book.consumers.values():
            self._compare_queues(consumer)

    def _compare_queues(self, consumer: Consumer) -> None:
        pending = self.ledger.reader.pending(consumer.id)
        assert set(pending) == set(self.book.target_keys(consumer.id))
        for key in pending:
            mine = self.book.pending(consumer.id, key)
            assert pending[key] == {uri: set(keys) for uri, keys in mine.items()}
            assert self.ledger.reader.queue(consumer.id, key) == list(self.book.queued(consumer.id, key))


def same(found: Iterable[Decision], expected: Iterable[Decision]) -> None:
    def parts(decisions: Iterable[Decision]) -> list[Any]:
        return [(d.id, d.consumer, d.target_key, [e.sequence for e in d.events], d.made) for d in decisions]

    assert parts(found) == parts(expected)


def run(ledger: Ledger, drawn: list[tuple[Any, ...]]) -> None:
    twins = Twins(ledger)
    for name, schedule in zip(NAMES[:2], (A & B, X | C), strict=True):
        twins.step("deploy", name, declared(schedule))
    for kind, *arguments in drawn:
        twins.step(kind, *arguments)
    twins.compare()


FEW = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FEW
@given(drawn=st.lists(steps, max_size=25))
def test_ledger_and_memory_agree(new_sqlite: NewLedger, drawn: list[tuple[Any, ...]]) -> None:
    ledger = new_sqlite()
    run(ledger, drawn)
    ledger.close()


@pytest.mark.postgres
@settings(FEW, max_examples=10)
@given(drawn=st.lists(steps, max_size=20))
def test_ledger_and_memory_agree_on_postgres(new_postgres: NewLedger, drawn: list[tuple[Any, ...]]) -> None:
    run(new_postgres(), drawn)
