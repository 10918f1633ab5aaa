"""Loops wait for an event or a time, end when they are cancelled, and log each trouble once."""

import asyncio
import logging

import pytest

from assetflow.errors import AssetflowError, LeaseLost, LedgerForeign, LedgerLocked
from assetflow.evaluator.health import FIRST_PAUSE, REASONS_LOGGED, Health, heard, keep_going, one_reason
from tests.evaluator.ledgers import LedgerHere
from tests.evaluator.runs.test_launch import Pad


async def test_heard_returns_whether_the_event_was_set_in_time() -> None:
    event = asyncio.Event()
    assert not await heard(event, 0.001)
    event.set()
    assert await heard(event, 60)
    assert await heard(event, None)


@pytest.mark.parametrize("turns", range(5))
async def test_a_cancelled_loop_ends_although_its_event_is_set_at_the_same_time(ledger: LedgerHere, turns: int) -> None:
    pad = Pad(ledger)
    pad.go()
    await pad.launcher.at_rest()
    pad.launcher.wake()
    for _ in range(turns):
        await asyncio.sleep(0)
    (loop,) = pad.tasks
    loop.cancel()
    ended, _ = await asyncio.wait(pad.tasks, timeout=5)
    assert ended == {loop}
    assert loop.cancelled()


def test_trouble_is_logged_once_for_each_reason_and_when_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    health = Health()
    with caplog.at_level(logging.INFO, "assetflow.evaluator"):
        for reason in ("held", "held", "full", "held", "full"):
            health.down("ledger", LedgerLocked(reason))
        health.up("ledger")
        health.up("ledger")
    told = [each.message.partition(";")[0] for each in caplog.records]
    assert told == ["ledger: held", "ledger: full", "ledger: works again after 0 s"]


def test_ever_new_reasons_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    health = Health()
    for number in range(100):
        health.down("ledger", LedgerLocked(f"held by process {number}"))
    assert len(caplog.records) == REASONS_LOGGED
    assert health.troubles == {"ledger": "held by process 99"}


async def test_after_a_success_the_pauses_start_with_the_shortest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    health, pauses, goes = Health(), list[float](), [False, False, False, True, False, False]

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def loop() -> None:
        if goes and goes.pop(0):
            health.up("deployments")
        if len(pauses) < 6:
            raise LedgerLocked("held")

    monkeypatch.setattr("assetflow.evaluator.health.asyncio.sleep", sleep)
    await keep_going("deployments", loop, health)
    assert pauses == [FIRST_PAUSE * factor for factor in (1, 2, 4, 1, 2, 4)]


@pytest.mark.parametrize("ends", [LeaseLost("taken"), LedgerForeign("another")])
async def test_what_ends_several_loops_is_raised_once_and_not_in_a_group(ends: AssetflowError) -> None:
    with pytest.raises(type(ends)) as raised:
        await _fail_together(ends, ends, OSError("disk"))
    assert raised.value is ends


async def test_other_errors_stay_in_their_group() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        await _fail_together(OSError("disk"))
    assert raised.group_contains(OSError)


async def _fail_together(*errors: Exception) -> None:
    async def fail(error: Exception) -> None:
        raise error

    with one_reason():
        async with asyncio.TaskGroup() as group:
            for error in errors:
                group.create_task(fail(error))
