"""Loops wait for an event or a time, end when they are cancelled, and log each trouble once."""

import asyncio

import pytest

from assetflow.errors import AssetflowError, LeaseLost, LedgerForeign
from assetflow.evaluator.health import one_reason
from tests.evaluator.ledgers import LedgerHere
from tests.evaluator.runs.test_launch import Pad


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


@pytest.mark.parametrize("ends", [LeaseLost("taken"), LedgerForeign("another")])
async def test_what_ends_several_loops_is_raised_once_and_not_in_a_group(ends: AssetflowError) -> None:
    with pytest.raises(type(ends)) as raised:
        await _fail_together(ends, ends, OSError("disk"))
    assert raised.value is ends


async def _fail_together(*errors: Exception) -> None:
    async def fail(error: Exception) -> None:
        raise error

    with one_reason():
        async with asyncio.TaskGroup() as group:
            for error in errors:
                group.create_task(fail(error))
