"""Loops wait for an event or a time, and end when they are told to, whatever happens at the same moment."""

from __future__ import annotations

import asyncio

import pytest

from assetflow.evaluator.health import heard
from tests.evaluator.test_launch import Pad


async def test_an_event_is_heard_or_not() -> None:
    event = asyncio.Event()
    assert not await heard(event, 0.001)
    event.set()
    assert await heard(event, 60)
    assert await heard(event, None)


@pytest.mark.parametrize("turns", range(5))
async def test_a_loop_ends_though_the_event_comes_with_its_end(turns: int) -> None:
    pad = Pad()
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
