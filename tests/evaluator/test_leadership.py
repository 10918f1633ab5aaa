"""Waiting for the lease, keeping it, and losing it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest

from assetflow.errors import EvaluatorRunning, LeaseLost, LedgerError, LedgerVersion
from assetflow.evaluator import leadership
from assetflow.evaluator.leadership import Leadership
from assetflow.ledger import Holder

HELD = EvaluatorRunning("another evaluator works on this ledger: process 7 on there")
AWAY = LedgerError("the database does not answer")


class FakeWriter:
    """Answers each call for the lease with the next error; when none is left, the lease is given."""

    def __init__(self, *errors: LedgerError) -> None:
        self.errors = list(errors)
        self.shown = 0
        self.released = False

    def acquire_lease(self, _holder: Holder) -> None:
        if self.errors:
            raise self.errors.pop(0)

    renew_lease = acquire_lease

    def stand_by(self, _holder: Holder) -> None:
        self.shown += 1

    def release_lease(self, _holder: Holder) -> None:
        self.released = True


class Clock:
    """Goes on by some milliseconds whenever somebody looks at it."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        self.now += 0.005
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(leadership, "time", clock)
    monkeypatch.setattr(leadership, "LOOK_EVERY", 0.0)
    return clock


async def gain(writer: FakeWriter, *, shared: bool = True, stand_by: bool = True) -> Leadership:
    ledger = SimpleNamespace(writer=writer, is_shared=shared)
    made = Leadership(cast(Any, ledger), Holder.this_process(uuid4()), stand_by=stand_by)
    try:
        await made.gain()
    finally:
        if writer.errors:
            await made.give_back()
    return made


async def test_it_stands_by_until_it_is_its_turn(caplog: pytest.LogCaptureFixture) -> None:
    writer = FakeWriter(HELD, HELD, HELD)
    with caplog.at_level(logging.INFO):
        await (await gain(writer)).give_back()
    assert [record.message for record in caplog.records] == [f"standing by: {HELD.message}", "leading now"]
    assert writer.shown == 1
    assert writer.released


async def test_nobody_stands_by_for_a_file() -> None:
    with pytest.raises(EvaluatorRunning, match="process 7"):
        await gain(FakeWriter(HELD, HELD), shared=False)


async def test_who_is_not_to_stand_by_waits_for_the_lease_of_a_dead_one_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    writer = FakeWriter(HELD, HELD)
    with caplog.at_level(logging.INFO):
        await (await gain(writer, stand_by=False)).give_back()
        with pytest.raises(EvaluatorRunning):
            await gain(FakeWriter(*[HELD] * 10_000), stand_by=False)
    assert not caplog.records
    assert not writer.shown


async def test_a_database_that_is_away_ends_who_starts_and_not_who_stands_by(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(LedgerError, match="does not answer"):
        await gain(FakeWriter(AWAY, HELD))
    with caplog.at_level(logging.INFO):
        await (await gain(FakeWriter(HELD, AWAY, AWAY, HELD))).give_back()
    told = [record.message for record in caplog.records]
    assert told[1:3] == [f"ledger: {AWAY}; trying again", "ledger: works again after 0 s"]


async def test_a_program_that_is_too_old_by_then_ends() -> None:
    with pytest.raises(LedgerVersion):
        await gain(FakeWriter(HELD, LedgerVersion("newer"), HELD))


async def test_who_stood_still_asks_before_anything_else(clock: Clock) -> None:
    writer = FakeWriter()
    leads = await gain(writer)
    writer.errors.append(LeaseLost("process 7 evaluates now"))
    await leads.confirm()
    clock.now += leadership.LEASE_SECONDS
    with pytest.raises(LeaseLost):
        await leads.confirm()
    await leads.keep()
    await leads.confirm()
    await leads.give_back()
