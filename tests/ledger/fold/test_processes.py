"""Processes that write in turn, fail and forget leave the ledger that one process leaves which never does.

What is drawn: recordings, deploys, switches, ends of runs, backfills, replays, removals and the passing of time, for
flows that run on updates, keep their outputs up to date, or have time in their schedules; and how much a process may
remember, down to nothing.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, Table, select

from assetflow.core.freshness.records import Backfill
from assetflow.core.partitions import DayWindow, IdentityMapper, RollupMapper, StartOfDayMapper, StartOfHourMapper
from assetflow.core.rules.state import Limits, State, queues
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceFlowRun
from assetflow.core.values.keeping import Keeping, Output
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions, Partitioning, Schedule
from assetflow.core.values.timing import Deadline, Intake
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.errors import AssetflowError
from assetflow.ledger import Ledger
from assetflow.ledger.fold.writing import Writing
from assetflow.ledger.sql.tables import Base
from assetflow.ledger.write import store
from assetflow.ledger.write.store import UnitOfWork
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW

SPACE = UUID(int=9)
MINUTE = timedelta(minutes=1)
RAW, CORE, BOARD, DAY = (Asset(f"s3://lake/{name}") for name in ("raw", "core", "board", "day"))
BEE, OTHER_BEE = (Asset(f"s3://lake/{name}", name="bee") for name in ("bee", "other"))
X, Y = AssetAlias("x"), AssetAlias("y")
HOURLY = RollupMapper(upstream_mapper=StartOfHourMapper(), window=DayWindow())
# The rest follows from what is drawn: ids of the ledger, counters of transactions, and who writes.
NOT_COMPARED = {"ledger", "lease", "cursor", "alembic_version"}


def keeping(reads: Sequence[Asset], makes: Asset, *, keys: bool = False) -> FlowDeclaration:
    schedule = Schedule(partitioning=Partitioning(IdentityMapper()) if keys else None, keeping=Keeping("eager"))
    outputs = (Output(makes.token, tuple(each.token for each in reads)),)
    return FlowDeclaration(ConsumerOptions(schedule), (makes,), tuple(reads), outputs)


def runs_on(schedule: object, **options: Any) -> FlowDeclaration:
    return FlowDeclaration(ConsumerOptions(to_schedule(schedule), **options))


def by_key(assets: Any, mapper: Any) -> PartitionedAssetTimetable:
    return PartitionedAssetTimetable(assets=assets, default_partition_mapper=mapper)


DECLARATIONS = [
    keeping([RAW], CORE),
    keeping([CORE], BOARD),
    keeping([RAW, CORE], BOARD),
    keeping([RAW], DAY, keys=True),
    runs_on(RAW & CORE, coalesce=True, while_paused="keep"),
    runs_on((RAW & CORE).within(5 * MINUTE)),
    runs_on(RAW | CORE, intake=Intake(debounce=2 * MINUTE, cooldown=6 * MINUTE)),
    runs_on(RAW & BOARD, deadline=Deadline(4 * MINUTE, then="run")),
    runs_on(X),
    runs_on((RAW & X) | Y, while_paused="keep"),
    runs_on(X & CORE),
    runs_on(Asset.ref(name="bee") & RAW),
    runs_on(BEE | Asset.ref(uri=CORE.uri)),
    runs_on(by_key(RAW & CORE, IdentityMapper()), coalesce=True),
    runs_on(by_key(RAW & X, StartOfDayMapper())),
    runs_on(by_key(RAW, HOURLY)),
]
NAMES = ["f/one", "f/two", "f/three"]

KEYS = [None, None, "2026-01-01T01:00:00", "2026-01-01T02:00:00", "2026-01-02T01:00:00", "no time"]

names = st.sampled_from(NAMES)
assets = st.sampled_from([RAW, RAW, CORE, BOARD])
# The number of an event, its asset, key and aliases; the number of a recording, its attempt, and its events.
events = st.tuples(
    st.integers(0, 60),
    st.sampled_from([RAW, CORE, BOARD, BEE, OTHER_BEE]),
    st.sampled_from(KEYS),
    st.sampled_from([(), (), ("x",), ("x", "y")]),
)
recordings = st.tuples(st.integers(0, 30), st.sampled_from([0, 0, 1]), st.lists(events, min_size=1, max_size=3))
batches = st.tuples(st.just("record"), st.lists(recordings, min_size=1, max_size=4))
operations = st.one_of(
    batches,
    batches,
    st.tuples(st.just("lose"), st.lists(recordings, min_size=1, max_size=2)),
    *[st.tuples(st.just("update"), assets, st.sampled_from([None, None, "k", "l"]), st.sampled_from([None, "1", "2"]))]
    * 3,
    *[st.tuples(st.just("end"), st.integers(0, 5), st.sampled_from(["completed", "completed", "failed"]))] * 2,
    st.tuples(st.just("deploy"), names, st.integers(0, len(DECLARATIONS) - 1)),
    st.tuples(st.just("switch"), names, st.sampled_from(["paused", "held"]), st.booleans()),
    st.tuples(st.just("remove"), names),
    st.tuples(st.just("remove_queued"), names, st.sampled_from([None, RAW, CORE]), st.sampled_from(KEYS)),
    st.tuples(st.just("let_pass"), st.integers(1, 8)),
    st.tuples(st.just("backfill"), st.sampled_from([CORE, BOARD, DAY]), st.booleans()),
    st.tuples(st.just("stop_or_resume"), st.booleans()),
    st.tuples(st.just("replay"), st.integers(0, 5)),
)


class BrokenOff(Exception):
    """The error that a test raises in the middle of a transaction."""


# Where a transaction fails: before anything is written, half-way, and just before the commit.
BREAKS = [(UnitOfWork, "write", False), (Writing, "_receipts", False), (UnitOfWork, "write", True)]


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


limits = st.builds(Remembered, st.sampled_from([0, 2000, 1 << 20]), st.integers(0, 3), st.sampled_from([0, 3, 10_000]))


# An operation, the process that carries it out, and where it fails at first.
steps = st.tuples(operations, st.integers(0, 1), st.sampled_from([None, None, None, *BREAKS]))


class Site:
    def __init__(self, ledgers: Sequence[Ledger]) -> None:
        self.ledgers = ledgers
        self.never_fails = ledgers[0] is ledgers[1]
        self.now = NOW
        self.count = 0

    def carry_out(self, operation: tuple[Any, ...], writer: int, broken: tuple[type, str, bool] | None) -> None:
        kind, *arguments = operation
        self.count += 1
        self.now += timedelta(seconds=20)
        now = self.now
        # A backfill is written in several transactions, and one that was cut short stays behind.
        if broken is not None and kind != "backfill":
            with breaking_off(*broken), suppress(BrokenOff, AssetflowError):
                getattr(self, kind)(self.ledgers[1 - writer], *arguments)
            self.now = now
        with suppress(AssetflowError):
            getattr(self, kind)(self.ledgers[writer], *arguments)

    def record(self, ledger: Ledger, drawn: Sequence[Any]) -> None:
        ledger.writer.events.record([self._recording(*each) for each in drawn], self.now)

    def lose(self, ledger: Ledger, drawn: Sequence[Any]) -> None:
        """Record something in a transaction that fails, and do not try again."""
        if not self.never_fails:
            with breaking_off(UnitOfWork, "write", afterwards=True), suppress(BrokenOff):
                self.record(ledger, drawn)

    def _recording(self, number: int, attempt: int, drawn: Sequence[Any]) -> Recording:
        moment, origin = NOW + timedelta(seconds=attempt), Origin("api")
        made = tuple(
            AssetEvent(uuid5(SPACE, f"event {event}"), asset, moment, origin, partition_key=key, aliases=aliases)
            for event, asset, key, aliases in drawn
        )
        return Recording(uuid5(SPACE, f"recording {number}"), made)

    def update(self, ledger: Ledger, asset: Asset, key: str | None, version: str | None) -> None:
        number = uuid5(SPACE, f"update {self.count}")
        event = AssetEvent(number, asset, self.now, Origin("api"), partition_key=key, data_version=version)
        ledger.writer.events.record([Recording(number, (event,))], self.now)

    def end(self, ledger: Ledger, index: int, outcome: Any) -> None:
        running = [each for each in ledger.reader.decisions.find(limit=1000) if each.ended is None]
        if not running:
            return
        decision = sorted(running, key=lambda each: each.id)[index % len(running)]
        run = uuid5(decision.id, "run")
        ledger.writer.decisions.launched(decision.id, run, self.now)
        made = self._made_by(ledger, decision.consumer)
        flow_run = SourceFlowRun(run, deployment_id=decision.deployment_id)
        if made is not None and outcome == "completed":
            number = uuid5(SPACE, f"output {self.count}")
            origin = Origin("task", flow_run=flow_run)
            event = AssetEvent(number, made, self.now, origin, partition_key=decision.target_key)
            ledger.writer.events.record([Recording(number, (event,))], self.now)
        ledger.writer.decisions.ended(outcome.capitalize(), self.now, decision_id=decision.id, outcome=outcome)

    def deploy(self, ledger: Ledger, name: str, place: int) -> None:
        text = declaration_to_text(DECLARATIONS[place])
        ledger.writer.consumers.deploy(name, uuid5(SPACE, name), None, text, False, False, self.now)

    def switch(self, ledger: Ledger, name: str, which: str, on: bool) -> None:
        self._with(ledger, name, lambda number: ledger.writer.consumers.switch(number, **{which: on}, now=self.now))

    def remove(self, ledger: Ledger, name: str) -> None:
        self._with(ledger, name, lambda number: ledger.writer.consumers.remove(number, self.now))

    def remove_queued(self, ledger: Ledger, name: str, asset: Asset | None, key: str | None) -> None:
        given = {"uri": asset and asset.uri, "target_key": key, "by": "me", "why": "so", "now": self.now}
        self._with(ledger, name, lambda number: ledger.writer.queues.remove(number, **given))

    def let_pass(self, ledger: Ledger, minutes: int) -> None:
        until = self.now + minutes * MINUTE
        while (passed := ledger.writer.clock.run(until, until)).next is not None and passed.next <= until:
            pass
        self.now = until

    def backfill(self, ledger: Ledger, asset: Asset, down: bool) -> None:
        planned = ledger.reader.backfills.plan(asset.uri, None, down=down)
        ledger.writer.backfills.begin(Backfill(0, self.now, asset.uri, down, 1, by="ann"), planned, self.now)

    def stop_or_resume(self, ledger: Ledger, stop: bool) -> None:
        (ledger.writer.backfills.stop if stop else ledger.writer.backfills.resume)(1, self.now)

    def replay(self, ledger: Ledger, index: int) -> None:
        waiting = [
            each for each in ledger.reader.decisions.find(limit=1000) if each.status in ("waiting", "undeliverable")
        ]
        if waiting:
            decision = sorted(waiting, key=lambda each: each.id)[index % len(waiting)]
            ledger.writer.decisions.undeliverable(decision.id, "no answer", self.now)
            ledger.writer.decisions.replay(decision.id, self.now)

    def _with(self, ledger: Ledger, name: str, act: Callable[[int], Any]) -> None:
        for record in ledger.reader.consumers.all():
            if record.consumer.name == name:
                act(record.consumer.id)

    def _made_by(self, ledger: Ledger, consumer: int) -> Asset | None:
        record = ledger.reader.consumers.get(consumer)
        made = () if record is None else record.consumer.options.data.outputs
        return Asset(made[0].asset.value) if made else None

    def rows(self, *, numbered: bool = True) -> dict[str, list[str]]:
        """Return the rows of all tables, with or without the numbers that the database gives them."""

        def columns(table: Table) -> list[Column[Any]]:
            given = None if numbered or table.name in ("consumer", "event") else table.autoincrement_column
            return [each for each in table.columns if each is not given]

        with self.ledgers[0]._engine.connect() as connection:
            return {
                name: sorted(map(repr, connection.execute(select(*columns(table))).all()))
                for name, table in Base.metadata.tables.items()
                if name not in NOT_COMPARED
            }


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


def compare(new: NewLedger, drawn: Sequence[Any], limits: Remembered, new_expected: NewLedger | None = None) -> None:
    with (new_expected or new)() as one, new() as first:
        url = first._engine.url.render_as_string(hide_password=False)
        with Ledger.open(url) as second:
            expected, found = Site([one, one]), Site([first, second])
            begun = [(("deploy", name, place), place % 2, None) for place, name in enumerate(NAMES[:2])]
            for operation, _, _ in [*begun, *drawn]:
                expected.carry_out(operation, 0, None)
            with limited(limits):
                for step in [*begun, *drawn]:
                    found.carry_out(*step)
            # What was rolled back takes numbers of Postgres away.
            numbered = new_expected is None
            assert found.rows(numbered=numbered) == expected.rows(numbered=numbered)


# To shrink a failing example would take minutes.
MANY = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.rule("3.1")
@settings(MANY, max_examples=5)
@given(drawn=st.lists(steps, min_size=8, max_size=20), limits=limits)
def test_two_processes_come_to_the_ledger_of_one(new_sqlite: NewLedger, drawn: list[Any], limits: Remembered) -> None:
    compare(new_sqlite, drawn, limits)


@pytest.mark.postgres
@settings(MANY, max_examples=5)
@given(drawn=st.lists(steps, min_size=8, max_size=20), limits=limits)
def test_two_processes_on_postgres_come_to_the_ledger_of_one_on_sqlite(
    new_postgres: NewLedger, new_sqlite: NewLedger, drawn: list[Any], limits: Remembered
) -> None:
    compare(new_postgres, drawn, limits, new_sqlite)
