"""The ledger and a plain model in memory come to the same state by the same steps.

Two processes take turns to write to the ledger, transactions fail and are tried again, and hypothesis also draws how
much a process may remember, down to nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from assetflow.core.explain.facts import names_in
from assetflow.core.partitions import DayWindow, IdentityMapper, RollupMapper, StartOfDayMapper, StartOfHourMapper
from assetflow.core.rules import registry
from assetflow.core.rules.fold import evaluate_consumer, record_and_pass
from assetflow.core.rules.state import Limits, State, queues
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.core.wire import declaration_from_text
from assetflow.errors import NameTaken
from assetflow.ledger import Ledger
from assetflow.ledger.fold.writing import Writing
from assetflow.ledger.write import store
from assetflow.ledger.write.store import UnitOfWork
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW, declared
from tests.ledger.model import Model

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
attempts = st.sampled_from([0, 0, 1])
recordings = st.tuples(st.integers(0, 30), attempts, st.lists(events, min_size=1, max_size=3))
declarations = st.builds(
    lambda schedule, keep, coalesce: declared(schedule, while_paused="keep" if keep else "drop", coalesce=coalesce),
    st.sampled_from(SCHEDULES),
    st.booleans(),
    st.booleans(),
)
names = st.sampled_from(NAMES)
operations = st.one_of(
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


class BrokenOff(Exception):
    """The error that a test raises in the middle of a transaction."""


# Where a transaction fails: before anything is written, half-way, and just before the commit.
BREAKS = [(UnitOfWork, "write", False), (Writing, "_receipts", False), (UnitOfWork, "write", True)]


@dataclass(frozen=True)
class Step:
    """One operation.

    Attributes:
        writer: which of the two processes carries it out.
        breaks: where it fails; `None` if it does not.
    """

    operation: tuple[Any, ...]
    writer: int = 0
    breaks: tuple[type, str, bool] | None = None


@dataclass(frozen=True)
class Remembered:
    """How much a process remembers between transactions.

    Attributes:
        size: the bytes of each kind.
        long: the most events of a queue that is remembered in full.
        far: the number of events of other processes after which everything is forgotten.
    """

    size: int = 1 << 20
    long: int = queues.LONG
    far: int = store.FAR_BEHIND


steps = st.builds(Step, operations, st.integers(0, 1), st.sampled_from([None, None, None, *BREAKS]))
limits = st.builds(Remembered, st.sampled_from([0, 2000, 1 << 20]), st.integers(0, 3), st.sampled_from([0, 3, 10_000]))


def to_recording(number: int, attempt: int, drawn: Sequence[dict[str, Any]]) -> Recording:
    made = tuple(
        AssetEvent(
            uuid5(SPACE, f"event {each['number']}"),
            each["asset"],
            NOW + timedelta(seconds=attempt),
            Origin("api"),
            partition_key=each["key"],
            aliases=each["aliases"],
        )
        for each in drawn
    )
    return Recording(uuid5(SPACE, f"recording {number}"), made)


@dataclass
class Twins:
    """Carries out each step on both, and compares the decisions.

    Attributes:
        ledgers: the same ledger, as two processes have it open.
    """

    ledgers: Sequence[Ledger]
    # It does what a state does, and is not one.
    model: Any = field(default_factory=Model)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    deployed: int = 0
    now: Any = NOW
    writer: int = 0

    @property
    def ledger(self) -> Ledger:
        return self.ledgers[self.writer]

    def step(self, step: Step) -> None:
        self.now += timedelta(seconds=1)
        self.writer = step.writer
        kind, *arguments = step.operation
        if step.breaks is None:
            getattr(self, kind)(*arguments)
            return
        before = deepcopy((self.model, self.consumers, self.deployed))
        with breaking_off(*step.breaks), suppress(BrokenOff):
            getattr(self, kind)(*arguments)
        self.model, self.consumers, self.deployed = before

    def record(self, drawn: list[tuple[int, int, list[dict[str, Any]]]]) -> None:
        batch = [to_recording(*each) for each in drawn]
        mine = [record_and_pass(self.model, each, self.now) for each in batch]
        theirs = self.ledger.writer.events.record(batch, self.now)
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
            registry.deploy(self.model, consumer)
        except NameTaken:
            with pytest.raises(NameTaken):
                self.ledger.writer.consumers.deploy(name, deployment_id, None, text, False, False, self.now)
            return
        self.deployed += 1
        self.consumers[name] = consumer
        decisions = registry.pass_over_consumer(self.model, consumer, self.now)
        theirs, their_decisions = self.ledger.writer.consumers.deploy(
            name, deployment_id, None, text, False, False, self.now
        )
        assert theirs == consumer
        same(their_decisions, decisions)

    def change(self, name: str, text: str) -> None:
        consumer = self.consumers.get(name)
        if consumer is None:
            return
        try:
            changed = registry.change(self.model, consumer, declaration_from_text(text).options)
        except NameTaken:
            with pytest.raises(NameTaken):
                self.ledger.writer.consumers.change(consumer.id, text, self.now)
            return
        self.consumers[name] = changed
        decisions = registry.pass_over_consumer(self.model, changed, self.now)
        theirs, their_decisions = self.ledger.writer.consumers.change(consumer.id, text, self.now)
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
        self.consumers[name] = changed = registry.switch(self.model, consumer, **{which: on}, now=self.now)
        freed = getattr(consumer, which) and not on
        decisions = registry.pass_over_consumer(self.model, changed, self.now) if freed else []
        theirs, their_decisions = self.ledger.writer.consumers.switch(consumer.id, **{which: on}, now=self.now)
        assert theirs == changed
        same(their_decisions, decisions)

    def remove(self, name: str) -> None:
        consumer = self.consumers.pop(name, None)
        if consumer is not None:
            registry.remove(self.model, consumer)
            self.ledger.writer.consumers.remove(consumer.id, self.now)

    def remove_queued(self, name: str, asset: Asset | None, key: str | None) -> None:
        consumer = self.consumers.get(name)
        if consumer is not None:
            uri = None if asset is None else asset.uri
            mine = registry.remove_queued(
                self.model, consumer, lambda e: uri in (None, e.uri), [key], by="me", why="so"
            )
            theirs = self.ledger.writer.queues.remove(
                consumer.id, uri=uri, target_key=key, by="me", why="so", now=self.now
            )
            assert theirs == mine

    def end(self, index: int) -> None:
        running = [d for d in self.model.made if d.id in self.model.running.get((d.consumer, d.target_key), ())]
        if not running:
            return
        decision = running[index % len(running)]
        self.model.running[decision.consumer, decision.target_key].discard(decision.id)
        consumer = self.model.registered.get(decision.consumer)
        expected: list[Decision] = []
        if consumer is not None and consumer.options.coalesce:
            expected = evaluate_consumer(self.model, consumer, [decision.target_key], self.now)
        found = self.ledger.writer.decisions.ended("Completed", self.now, decision_id=decision.id)
        assert found is not None
        same(found, expected)

    def compare(self) -> None:
        """Check that the ledger holds what the model holds."""
        reader = self.ledger.reader
        stored = reader.events.find()
        shown = names_in(self.model)
        assert [(e.sequence, e.id, e.asset.name, e.partition_key, e.aliases) for e in stored] == [
            (e.sequence, e.id, shown(e.uri), e.partition_key, e.aliases) for e in self.model.recorded
        ]
        receipts = {
            (r.receipt.event, r.receipt.consumer, r.receipt.target_key): r.receipt
            for each in stored
            for r in reader.receipts.of_event(each.id)
        }
        assert receipts == self.model.written
        made = list(reversed(reader.decisions.find(limit=1000)))
        assert [d.id for d in made] == [d.id for d in self.model.made]
        assert list(reader.decisions.events_of(made).values()) == [d.events for d in self.model.made]
        assert [record.consumer for record in reader.consumers.all()] == list(self.model.registered.values())
        for consumer in self.model.registered.values():
            self._compare_queues(consumer)

    def _compare_queues(self, consumer: Consumer) -> None:
        pending = self.ledger.reader.queues.pending(consumer.id)
        assert set(pending) == set(self.model.target_keys(consumer.id))
        for key in pending:
            mine = self.model.pending(consumer.id, key)
            assert pending[key] == {uri: dict(keys) for uri, keys in mine.items()}
            assert self.ledger.reader.queues.events(consumer.id, key) == list(self.model.queued(consumer.id, key))


def same(found: Iterable[Decision], expected: Iterable[Decision]) -> None:
    def parts(decisions: Iterable[Decision]) -> list[Any]:
        return [(d.id, d.consumer, d.target_key, [e.sequence for e in d.events], d.made) for d in decisions]

    assert parts(found) == parts(expected)


@contextmanager
def breaking_off(owner: type, name: str, afterwards: bool) -> Generator[None]:
    """Let transactions within the block fail before or after this method."""
    real = getattr(owner, name)

    def broken(*arguments: Any) -> None:
        if afterwards:
            real(*arguments)
        raise BrokenOff

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, broken)
        yield


@contextmanager
def limited(limits: Remembered) -> Generator[None]:
    """Let processes remember no more than this within the block."""
    size = Limits(limits.size, limits.size, limits.size, limits.size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "State", lambda source: State(source, size))
        patch.setattr(queues, "LONG", limits.long)
        patch.setattr(store, "FAR_BEHIND", limits.far)
        yield


def run(ledger: Ledger, drawn: Sequence[Step], limits: Remembered) -> None:
    with Ledger.open(ledger._engine.url.render_as_string(hide_password=False)) as other:
        twins = Twins((ledger, other))
        with limited(limits):
            for name, schedule in zip(NAMES[:2], (A & B, X | C), strict=True):
                twins.step(Step(("deploy", name, declared(schedule))))
            for step in drawn:
                twins.step(step)
            twins.compare()


def updated(asset: Asset, number: int, **given: Any) -> Step:
    event = {"number": number, "asset": asset, "key": None, "aliases": ()}
    return Step(("record", [(number, 0, [event])]), **given)


# What drawing meets too seldom: a queue that is too long to be kept, and another writer's commit after a rollback.
LONG_QUEUE = [updated(A, 1), updated(A, 2), updated(B, 3)]
ROLLED_BACK = [updated(C, 1), updated(A, 2, breaks=BREAKS[2]), updated(C, 3, writer=1), updated(B, 4)]

FEW = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.rule("3.1")
@FEW
@example(drawn=LONG_QUEUE, limits=Remembered(long=0))
@example(drawn=ROLLED_BACK, limits=Remembered())
@given(drawn=st.lists(steps, min_size=8, max_size=30), limits=limits)
def test_ledger_and_memory_agree(new_sqlite: NewLedger, drawn: list[Step], limits: Remembered) -> None:
    with new_sqlite() as ledger:
        run(ledger, drawn, limits)


@pytest.mark.postgres
@settings(FEW)
@given(drawn=st.lists(steps, min_size=8, max_size=25), limits=limits)
def test_ledger_and_memory_agree_on_postgres(new_postgres: NewLedger, drawn: list[Step], limits: Remembered) -> None:
    run(new_postgres(), drawn, limits)
