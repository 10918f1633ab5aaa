"""Topics of Kafka, by confluent-kafka. Offsets are committed after the messages are recorded.

The partitions are assigned here and not by the group, because one process watches at a time: a process that takes over
reads at once, and does not wait until the group has noticed that the other one is gone.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, cast

from assetflow.core.values.addresses import kafka_options
from assetflow.core.values.triggers import MessageQueueTrigger
from assetflow.core.watchers.intake import Message
from assetflow.errors import WatchingFailed
from assetflow.watching.kinds import BrokerQueue, needing

logger = logging.getLogger("assetflow.watching")

SECONDS_TO_ANSWER = 10.0
SECONDS_TO_POLL = 1.0
OPTIONS: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",
    "reconnect.backoff.ms": 500,
    # Errors come to `error_cb`. Without this, librdkafka writes them to stderr.
    "log_level": 0,
    # How much it reads ahead.
    "queued.max.messages.kbytes": 4096,
}


class KafkaTopic(BrokerQueue):
    """An open topic of Kafka; see `BrokerQueue`.

    Parameters:
        consumer: an `AIOConsumer`.
        library: the module `confluent_kafka`.
        errors: the codes of the errors that librdkafka has told.
    """

    def __init__(self, consumer: Any, library: Any, trigger: MessageQueueTrigger, errors: set[int]) -> None:
        self.source = ""
        self.label = f"Kafka {trigger.topic}"
        self._consumer = consumer
        self._library = library
        self._errors = errors
        self._topic, self._batch = trigger.topic or "", trigger.batch
        self._partitions = 0
        self._next: dict[int, int] = {}

    async def begin(self) -> None:
        """Find the topic, and begin where its group has come to, else with the oldest message. Contract 10.4."""
        told = await self._consumer.list_topics(self._topic, timeout=SECONDS_TO_ANSWER)
        found = told.topics[self._topic]
        if found.error is not None:
            unknown = found.error.code() == self._library.KafkaError.UNKNOWN_TOPIC_OR_PART
            raise WatchingFailed(
                f"Kafka has no topic {self._topic!r}" if unknown else f"Kafka refuses the topic: {found.error.str()}",
                where=self.label,
                fix="Create it, or correct its name in the trigger",
            )
        self.source = f"kafka {told.cluster_id} {self._topic}"
        self._partitions = len(found.partitions)
        every = [self._library.TopicPartition(self._topic, each) for each in range(self._partitions)]
        await self._consumer.assign(every)

    async def take(self, seconds: float = 0.0) -> Sequence[Message]:
        """Return the next messages, as many as are there."""
        self._next = {}
        first = None
        while first is None:
            first = await self._consumer.poll(SECONDS_TO_POLL)
            if first is None:
                self._check_connected()
        self._errors.clear()
        rest: list[Any] = await self._consumer.consume(self._batch - 1, seconds) if self._batch > 1 else []
        found = [self._checked(each) for each in (first, *rest)]
        self._next = {each.partition(): each.offset() + 1 for each in found}
        return [_message(each) for each in found]

    async def acknowledge(self, refused: Collection[int]) -> None:  # noqa: ARG002  (Kafka has no dead letters)
        """Commit the offsets."""
        offsets = [self._library.TopicPartition(self._topic, *each) for each in self._next.items()]
        for each in await self._consumer.commit(offsets=offsets, asynchronous=False):
            if each.error is not None:
                raise WatchingFailed(f"Kafka does not commit: {each.error}", where=self.label)

    async def depth(self) -> int:
        """Return how many messages are not committed. New partitions of the topic are read from now on."""
        told = await self._consumer.list_topics(self._topic, timeout=SECONDS_TO_ANSWER)
        count = len(told.topics[self._topic].partitions)
        if count > self._partitions:
            more = [self._library.TopicPartition(self._topic, each) for each in range(self._partitions, count)]
            await self._consumer.incremental_assign(more)
            self._partitions = count
        every = [self._library.TopicPartition(self._topic, each) for each in range(count)]
        committed = await self._consumer.committed(every, timeout=SECONDS_TO_ANSWER)
        return sum([await self._waiting(each) for each in committed])

    async def _waiting(self, partition: Any) -> int:
        low, high = await self._consumer.get_watermark_offsets(partition, timeout=SECONDS_TO_ANSWER)
        return max(0, high - max(low, partition.offset))

    def _check_connected(self) -> None:
        """Raise what keeps us from the cluster: librdkafka itself would wait for ever."""
        if refused := _refusal(self._errors, self._library):
            raise WatchingFailed(refused, where=self.label, fix="Correct the address")
        if self._library.KafkaError._ALL_BROKERS_DOWN in self._errors:
            raise WatchingFailed("no server of Kafka can be reached", where=self.label)

    def _checked(self, message: Any) -> Any:
        if message.error() is not None:
            raise WatchingFailed(f"Kafka fails: {message.error().str()}", where=self.label)
        return message


def _message(received: Any) -> Message:
    kind, milliseconds = received.timestamp()
    sent = datetime.fromtimestamp(milliseconds / 1000, UTC) if kind else None
    # Offsets begin again in a topic that was deleted and created again: the time tells such messages apart.
    number = f"{received.partition()}:{received.offset()}@{milliseconds}"
    return Message(received.value() or b"", number, sent=sent)


def _refusal(errors: Collection[int], library: Any) -> str | None:
    """Return what to say if Kafka refuses the password."""
    return "Kafka refuses the user or the password" if library.KafkaError._AUTHENTICATION in errors else None


@asynccontextmanager
async def open_kafka(trigger: MessageQueueTrigger, url: str) -> AsyncGenerator[KafkaTopic]:
    """Open a topic of Kafka.

    Raises:
        WatchingFailed: no server answers, or it refuses the user; there is no such topic; confluent-kafka is missing.
    """
    where = url.partition("?")[0]
    with needing("confluent-kafka", "kafka", where):
        library = cast(Any, import_module("confluent_kafka"))
        aio = cast(Any, import_module("confluent_kafka.aio"))
    errors: set[int] = set()

    async def note(error: Any) -> None:
        errors.add(error.code())
        logger.debug("%s: %s", where, error)

    options = {**OPTIONS, **kafka_options(url), "group.id": trigger.group, "error_cb": note}
    try:
        consumer = aio.AIOConsumer(options, max_workers=2)
    except library.KafkaException as error:
        raise WatchingFailed(f"Kafka cannot be used: {error.args[0].str()}", where=where) from error
    try:
        topic = KafkaTopic(consumer, library, trigger, errors)
        await topic.begin()
        yield topic
    except library.KafkaException as error:
        # Only this calls `error_cb`.
        with suppress(library.KafkaException):
            await consumer.poll(0)
        if refused := _refusal(errors, library):
            raise WatchingFailed(refused, where=where, fix="Correct the address") from error
        raise WatchingFailed(f"Kafka fails: {error.args[0].str()}", where=where) from error
    finally:
        await consumer.close()
