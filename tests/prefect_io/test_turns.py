"""Turns: one at a time, and nobody waits for who is slow."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from assetflow.errors import PrefectUnreachable
from assetflow.prefect_io.flow_runs import Turns
from tests.environment.tasks import cancel
from tests.environment.waiting import until_async

NEVER = 3600.0


class Queue:
    """Those who have a turn now, each until it is told to end."""

    def __init__(self) -> None:
        self.turns = Turns(NEVER)
        self.at_work: list[UUID] = []
        self.ends: dict[UUID, asyncio.Future[None]] = {}
        self.tasks: list[asyncio.Task[None]] = []

    def send(self, *names: UUID) -> None:
        for who in names:
            self.ends[who] = asyncio.get_running_loop().create_future()
            self.tasks.append(asyncio.create_task(self._work(who)))

    async def _work(self, who: UUID) -> None:
        async with self.turns.of(who):
            self.at_work.append(who)
            try:
                await self.ends[who]
            finally:
                self.at_work.remove(who)

    async def now(self) -> list[UUID]:
        """Who works once everybody went as far as possible without time passing."""
        for _ in range(20):
            await asyncio.sleep(0)
        return list(self.at_work)

    async def end(self, who: UUID) -> None:
        self.ends[who].set_result(None)
        await self.now()

    async def fail(self, who: UUID) -> None:
        self.ends[who].set_exception(PrefectUnreachable("slow"))
        await self.now()

    async def make_slow(self, *names: UUID) -> None:
        """Let each outlast a turn and fail."""
        self.turns.seconds = 0.001
        self.send(*names)
        await until_async(lambda: len(self.at_work) == len(names))
        await asyncio.sleep(0.002)
        for who in names:
            await self.fail(who)
        self.turns.seconds = NEVER


@pytest.fixture
async def queue() -> AsyncIterator[Queue]:
    queue = Queue()
    yield queue
    await cancel(*queue.tasks)


async def test_one_works_at_a_time_in_the_order_of_coming(queue: Queue) -> None:
    names = [uuid4() for _ in range(3)]
    queue.send(*names)
    for name in names:
        assert await queue.now() == [name]
        await queue.end(name)


async def test_after_a_turn_the_next_one_works_beside_the_slow_one(queue: Queue) -> None:
    slow, other = uuid4(), uuid4()
    queue.turns.seconds = 0.001
    queue.send(slow)
    await queue.now()
    queue.turns.seconds = NEVER
    queue.send(other)
    await until_async(lambda: queue.at_work == [slow, other])
    await queue.end(slow)
    queue.send(uuid4())
    assert await queue.now() == [other], "the turn of the other one goes on"


async def test_who_was_slow_and_failed_has_no_turn_until_it_succeeds(queue: Queue) -> None:
    slow, other = uuid4(), uuid4()
    await queue.make_slow(slow)
    queue.send(slow, other)
    assert await queue.now() == [slow, other]
    await queue.end(slow)
    await queue.end(other)
    queue.send(slow, other)
    assert await queue.now() == [slow]
