"""Queues of RabbitMQ, by aio-pika.

The broker delivers only until the first message is there; what it has delivered by then is one batch. It delivers on
when the batch is acknowledged and the notes of its messages are gone. So no message is ever delivered and not recorded
while another one's note may be left over, and an equal message is never taken for it. Contract 10.3.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC
from typing import TYPE_CHECKING, Any, cast

from assetflow.core.values.addresses import source_of_url, without_user
from assetflow.core.values.triggers import MessageQueueTrigger
from assetflow.core.watchers.intake import Message
from assetflow.errors import WatchingFailed
from assetflow.watching.kinds import BrokerQueue, needing

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue

PORTS = {"amqp": 5672, "amqps": 5671}
SECONDS_TO_CONNECT = 10.0
SECONDS_TO_ANSWER = 30.0


class RabbitQueue(BrokerQueue):
    """An open queue of RabbitMQ; see `BrokerQueue`."""

    def __init__(self, channel: AbstractChannel, queue: AbstractQueue, source: str, batch: int) -> None:
        self.source = source
        self.label = f"RabbitMQ {queue.name}"
        self._channel = channel
        self._queue = queue
        self._batch = batch
        self._arrived: asyncio.Queue[AbstractIncomingMessage | None] = asyncio.Queue()
        self._delivered: list[AbstractIncomingMessage] = []
        self._new: AbstractIncomingMessage | None = None
        self._tag: str | None = None
        channel.close_callbacks.add(self._closed)

    async def take(self, seconds: float = 0.0) -> Sequence[Message]:
        """Return what the broker delivers until the first message is there, or for so many seconds more."""
        if self._new is not None:
            self._delivered, self._new = [self._new], None
            return [_message(each) for each in self._delivered]
        tag = self._tag = await self._queue.consume(self._deliver, timeout=SECONDS_TO_ANSWER)
        first = await self._arrived.get()
        more = await self._collect(seconds) if first is not None else []
        self._tag = None
        await self._queue.cancel(tag, timeout=SECONDS_TO_ANSWER)
        rest = [first, *more, *(self._arrived.get_nowait() for _ in range(self._arrived.qsize()))]
        self._delivered = [each for each in rest if each is not None]
        if None in rest:
            raise WatchingFailed("RabbitMQ closed the connection", where=self.source)
        return [_message(each) for each in self._delivered]

    async def left(self) -> Sequence[Message]:
        """Return the next message if it was delivered before. The broker delivers those first."""
        found = await self._queue.get(fail=False, timeout=SECONDS_TO_ANSWER)
        if found is None or not found.redelivered:
            self._new, self._delivered = found, []
        else:
            self._delivered = [found]
        return [_message(each) for each in self._delivered]

    async def acknowledge(self, refused: Collection[int]) -> None:
        """Acknowledge the messages; refused ones go to the queue's dead-letter exchange, if it has one."""
        for place, each in enumerate(self._delivered):
            if place in refused:
                await each.reject(requeue=False)
            else:
                await each.ack()
        # The broker answers this after it has read all that was sent before.
        await self._channel.set_qos(prefetch_count=self._batch, timeout=SECONDS_TO_ANSWER)

    async def depth(self) -> int:
        """Return how many messages are ready to be delivered.

        Raises:
            WatchingFailed: the broker has cancelled the consumer, for instance because the queue was deleted.
        """
        channel = await self._channel.get_underlay_channel()
        if self._tag is not None and self._tag not in cast(Any, channel).consumers:
            raise WatchingFailed("RabbitMQ has ended the delivery", where=self.source)
        declared = await self._channel.declare_queue(self._queue.name, passive=True, timeout=SECONDS_TO_ANSWER)
        return declared.declaration_result.message_count or 0

    async def _collect(self, seconds: float) -> list[AbstractIncomingMessage | None]:
        found: list[AbstractIncomingMessage | None] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(found) < self._batch - 1 and None not in found:
                    found.append(await self._arrived.get())
        return found

    def _closed(self, *_: object) -> None:
        self._arrived.put_nowait(None)

    async def _deliver(self, message: AbstractIncomingMessage) -> None:
        self._arrived.put_nowait(message)


def _message(delivered: AbstractIncomingMessage) -> Message:
    sent = delivered.timestamp
    return Message(
        delivered.body,
        (delivered.message_id or "").strip() or None,
        bool(delivered.redelivered),
        None if sent is None else sent.replace(tzinfo=sent.tzinfo or UTC),
    )


@asynccontextmanager
async def open_rabbitmq(trigger: MessageQueueTrigger, url: str) -> AsyncGenerator[RabbitQueue]:
    """Open a queue of RabbitMQ.

    Raises:
        WatchingFailed: the server does not answer, or refuses the user; there is no such queue; aio-pika is missing.
    """
    with needing("aio-pika", "rabbitmq", without_user(url)):
        import aio_pika
        from aio_pika import exceptions
    name = trigger.queue or ""
    where = without_user(url).partition("?")[0]
    try:
        connection = await aio_pika.connect(url, timeout=SECONDS_TO_CONNECT)
    except (exceptions.ProbableAuthenticationError, exceptions.AuthenticationError) as error:
        raise WatchingFailed(
            "RabbitMQ refuses the user or the password", where=where, fix="Correct the address"
        ) from error
    except (exceptions.AMQPError, OSError, TimeoutError) as error:
        raise WatchingFailed(f"RabbitMQ cannot be reached: {error or type(error).__name__}", where=where) from error
    async with connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=trigger.batch)
        try:
            queue = await channel.declare_queue(name, passive=True, timeout=SECONDS_TO_ANSWER)
        except exceptions.ChannelNotFoundEntity as error:
            raise WatchingFailed(
                f"RabbitMQ has no queue {name!r}", where=where, fix="Declare it, or correct its name in the trigger"
            ) from error
        yield RabbitQueue(channel, queue, f"{source_of_url(url, PORTS)} {name}", trigger.batch)
