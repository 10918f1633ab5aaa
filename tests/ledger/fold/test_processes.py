"""Processes that write in turn, fail and forget leave the ledger that one process leaves which never does.

What is drawn: updates, deploys, pauses, ends of runs, backfills, replays and the passing of time, for flows that run on
updates, keep their outputs up to date, or have time in their schedules. `test_twin.py` compares with a second
implementation instead, for flows without time and freshness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from assetflow.core.freshness.records import Backfill
from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceFlowRun
from assetflow.core.values.keeping import Keeping, Output
from assetflow.core.values.schedules import ConsumerOptions, Partitioning, Schedule
from assetflow.core.values.timing import Deadline, Intake
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.errors import AssetflowError
from assetflow.ledger import Ledger
from assetflow.ledger.sql.tables import Base
from tests.ledger.conftest import NewLedger
from tests.ledger.fold.test_twin import BREAKS, BrokenOff, Remembered, breaking_off, limited, limits
from tests.ledger.making import NOW

SPACE = UUID(int=9)
MINUTE = timedelta(minutes=1)
RAW, CORE, BOARD, DAY = (Asset(f"s3://lake/{name}") for name in ("raw", "core", "board", "day"))
# The rest follows from what is drawn: ids of the ledger, counters of transactions, and who writes.
NOT_COMPARED = {"ledger", "lease", "cursor", "alembic_version"}


def keeping(reads: Sequence[Asset], makes: Asset, *, keys: bool = False) -> FlowDeclaration:
    schedule = Schedule(partitioning=Partitioning(IdentityMapper()) if keys else None, keeping=Keeping("eager"))
    outputs = (Output(makes.token, tuple(each.token for each in reads)),)
    return FlowDeclaration(ConsumerOptions(schedule), (makes,), tuple(reads), outputs)


DECLARATIONS = [
    keeping([RAW], CORE),
    keeping([CORE], BOARD),
    keeping([RAW, CORE], BOARD),
    keeping([RAW], DAY, keys=True),
    FlowDeclaration(ConsumerOptions(Schedule(RAW & CORE), coalesce=True, while_paused="keep")),
    FlowDeclaration(ConsumerOptions(Schedule((RAW & CORE).within(5 * MINUTE)))),
    FlowDeclaration(ConsumerOptions(Schedule(RAW | CORE), intake=Intake(debounce=2 * MINUTE, cooldown=6 * MINUTE))),
    FlowDeclaration(ConsumerOptions(Schedule(RAW & BOARD), deadline=Deadline(4 * MINUTE, then="run"))),
]
NAMES = ["f/one", "f/two", "f/three"]

names = st.sampled_from(NAMES)
assets = st.sampled_from([RAW, RAW, CORE, BOARD])
operations = st.one_of(
    *[st.tuples(st.just("update"), assets, st.sampled_from([None, None, "k", "l"]), st.sampled_from([None, "1", "2"]))]
    * 3,
    *[st.tuples(st.just("end"), st.integers(0, 5), st.sampled_from(["completed", "completed", "failed"]))] * 2,
    st.tuples(st.just("deploy"), names, st.integers(0, len(DECLARATIONS) - 1)),
    st.tuples(st.just("switch"), names, st.sampled_from(["paused", "held"]), st.booleans()),
    st.tuples(st.just("remove"), names),
    st.tuples(st.just("let_pass"), st.integers(1, 8)),
    st.tuples(st.just("backfill"), st.sampled_from([CORE, BOARD, DAY]), st.booleans()),
    st.tuples(st.just("stop_or_resume"), st.booleans()),
    st.tuples(st.just("replay"), st.integers(0, 5)),
)
# An operation, the process that carries it out, and where it fails at first.
steps = st.tuples(operations, st.integers(0, 1), st.sampled_from([None, None, None, *BREAKS]))


class Site:
    def __init__(self, ledgers: Sequence[Ledger]) -> None:
        self.ledgers = ledgers
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

    def rows(self) -> dict[str, list[str]]:
        with self.ledgers[0]._engine.connect() as connection:
            return {
                name: sorted(map(repr, connection.execute(select(table)).all()))
                for name, table in Base.metadata.tables.items()
                if name not in NOT_COMPARED
            }


def compare(new: NewLedger, drawn: Sequence[Any], limits: Remembered) -> None:
    with new() as one, new() as first, Ledger.open(first.place) as second:
        expected, found = Site([one, one]), Site([first, second])
        begun = [(("deploy", name, place), place % 2, None) for place, name in enumerate(NAMES[:2])]
        for operation, _, _ in [*begun, *drawn]:
            expected.carry_out(operation, 0, None)
        with limited(limits):
            for step in [*begun, *drawn]:
                found.carry_out(*step)
        assert found.rows() == expected.rows()


# To shrink a failing example would take minutes.
FEW = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.long
@FEW
@given(drawn=st.lists(steps, min_size=10, max_size=30), limits=limits)
def test_two_processes_come_to_the_ledger_of_one(new_sqlite: NewLedger, drawn: list[Any], limits: Remembered) -> None:
    compare(new_sqlite, drawn, limits)
