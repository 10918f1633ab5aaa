"""An evaluator waits for the lease, keeps it, and loses it."""

import logging
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest

from assetflow.errors import EvaluatorRunning, LeaseLost, LedgerError
from assetflow.evaluator import ledger_thread
from assetflow.evaluator.ledger_thread import Leadership
from assetflow.ledger import Holder

HELD = EvaluatorRunning("another evaluator is running on this ledger: process 7 on there")


class FakeLease:
    """Raises the next error at each request for the lease; grants it when none is left."""

    def __init__(self, *errors: LedgerError) -> None:
        self.errors = list(errors)
        self.shown = 0
        self.released = False

    def acquire(self, _holder: Holder) -> None:
        if self.errors:
            raise self.errors.pop(0)

    renew = acquire

    def stand_by(self, _holder: Holder) -> None:
        self.shown += 1

    def release(self, _holder: Holder) -> None:
        self.released = True


class Clock:
    """A clock that advances by some milliseconds each time it is read."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        self.now += 0.005
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(ledger_thread, "time", clock)
    monkeypatch.setattr(ledger_thread, "LOOK_EVERY", 0.0)
    return clock


async def gain(lease: FakeLease, *, shared: bool = True, stand_by: bool = True) -> Leadership:
    ledger = SimpleNamespace(writer=SimpleNamespace(lease=lease), is_shared=shared)
    made = Leadership(cast(Any, ledger), Holder.this_process(uuid4()), stand_by=stand_by)
    try:
        await made.gain()
    finally:
        if lease.errors:
            await made.give_back()
    return made


async def test_an_evaluator_stands_by_until_it_can_lead(caplog: pytest.LogCaptureFixture) -> None:
    lease = FakeLease(HELD, HELD, HELD)
    with caplog.at_level(logging.INFO):
        await (await gain(lease)).give_back()
    assert [record.message for record in caplog.records] == [f"standing by: {HELD.message}", "leading now"]
    assert lease.shown == 1
    assert lease.released


async def test_an_evaluator_does_not_stand_by_for_a_file() -> None:
    with pytest.raises(EvaluatorRunning, match="process 7"):
        await gain(FakeLease(HELD, HELD), shared=False)


async def test_after_standing_still_the_lease_is_renewed_before_anything_else(clock: Clock) -> None:
    writer = FakeLease()
    leads = await gain(writer)
    writer.errors.append(LeaseLost("process 7 evaluates now"))
    await leads.confirm()
    clock.now += ledger_thread.LEASE_SECONDS
    with pytest.raises(LeaseLost):
        await leads.confirm()
    await leads.keep()
    await leads.confirm()
    await leads.give_back()
