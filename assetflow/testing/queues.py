"""What every queue has to do that an `assetflow.watchers` entry point opens: a suite of tests for its author.

>>> from assetflow.testing.queues import QueueSuite
>>> class TestNats(QueueSuite):
...     def open_queue(self): ...
...     def send(self, bodies): ...

pytest runs the tests of the class. Contract 10.2, 10.3.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from assetflow.core.watchers.intake import Message
from assetflow.watching.kinds import BrokerQueue

SECONDS = 60.0
BODIES = [b'{"number": 1}', b'{"number": 2}', b'{"number": 1}']


class QueueSuite(ABC):
    """Tests of a kind of queue. Each test gets an object of its own, and needs an empty queue."""

    @abstractmethod
    def open_queue(self) -> AbstractAsyncContextManager[BrokerQueue]:
        """Open the queue, with a batch of at least ten messages."""

    @abstractmethod
    def send(self, bodies: Sequence[bytes]) -> None:
        """Send messages as a producer does, and return when the broker has them."""

    def content_of(self, message: Message) -> bytes:
        """Return the body that was sent, for brokers whose messages are more than a body."""
        return message.body

    def test_messages_are_taken_in_their_order_with_their_content(self) -> None:
        self.send(BODIES)
        taken = asyncio.run(self._take(len(BODIES), acknowledge=True))
        assert [self.content_of(each) for each in taken] == BODIES

    def test_equal_messages_are_told_apart(self) -> None:
        self.send(BODIES)
        numbers = [each.id for each in asyncio.run(self._take(len(BODIES), acknowledge=True)) if each.id is not None]
        assert len(set(numbers)) == len(numbers)

    def test_what_was_acknowledged_does_not_come_again(self) -> None:
        self.send(BODIES)
        asyncio.run(self._take(len(BODIES), acknowledge=True))
        self.send([b"{}"])
        assert [self.content_of(each) for each in asyncio.run(self._take(1, acknowledge=True))] == [b"{}"]

    def test_what_was_not_acknowledged_comes_again_and_can_be_known(self) -> None:
        self.send(BODIES)
        first = asyncio.run(self._take(1, acknowledge=False))
        again = asyncio.run(self._take(len(BODIES), acknowledge=True))
        assert sorted(self.content_of(each) for each in again) == sorted(BODIES)
        # A message without an id is known by the flag and its content.
        assert {each.id for each in first} <= {each.id for each in again}
        flagged = sum(each.redelivered for each in again if each.id is None)
        assert flagged >= sum(each.id is None for each in first)

    def test_refused_messages_do_not_come_again(self) -> None:
        self.send(BODIES)
        asyncio.run(self._take(len(BODIES), acknowledge=True, refused=(0,)))
        self.send([b"{}"])
        assert [self.content_of(each) for each in asyncio.run(self._take(1, acknowledge=True))] == [b"{}"]

    def test_a_batch_is_collected_for_a_time(self) -> None:
        self.send(BODIES[:1])
        taken = asyncio.run(self._collect())
        assert [self.content_of(each) for each in taken] == BODIES[:2]

    def test_it_tells_what_waits_and_where_it_is(self) -> None:
        self.send(BODIES)
        assert asyncio.run(self._facts()) == asyncio.run(self._facts())

    async def _take(self, count: int, *, acknowledge: bool, refused: Sequence[int] = ()) -> list[Message]:
        """Open the queue, take so many messages, and close it."""
        found: list[Message] = []
        async with asyncio.timeout(SECONDS), self.open_queue() as queue:
            while len(found) < count:
                found += await queue.left() or await queue.take()
                if acknowledge:
                    await queue.acknowledge(refused)
        return found

    async def _collect(self) -> Sequence[Message]:
        async with asyncio.timeout(SECONDS), self.open_queue() as queue:
            taking = asyncio.create_task(queue.take(5.0))
            await asyncio.to_thread(self.send, BODIES[1:2])
            found = await taking
            await queue.acknowledge([])
        return found

    async def _facts(self) -> tuple[str, str, int]:
        async with asyncio.timeout(SECONDS), self.open_queue() as queue:
            return queue.source, queue.label, await queue.depth()
