"""Kafka: a topic that grows, and a password that is refused."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.aio import AIOConsumer

from assetflow.watchers import MessageQueueTrigger
from tests.environment.waiting import until_async
from tests.watching.brokers import KafkaCluster
from tests.watching.outside import Direct, updates, watch, watching

pytestmark = pytest.mark.long


async def test_partitions_that_are_added_are_read(
    direct: Direct, kafka: KafkaCluster, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assetflow.watching.watching.SECONDS_BETWEEN_LAGS", 0.1)
    kafka.send(name, b"{}")
    lists, has_grown = AIOConsumer.list_topics, False

    async def list_topics(self: AIOConsumer, topic: str, **options: Any) -> Any:
        found = await lists(self, topic, **options)
        # The mock cluster gives each topic four partitions, and cannot add any.
        for number in (2, 3) if not has_grown else ():
            del found.topics[topic].partitions[number]
        return found

    monkeypatch.setattr(AIOConsumer, "list_topics", list_topics)
    watch(direct.ledger, MessageQueueTrigger(kafka.url, topic=name))
    async with watching(direct):
        await until_async(lambda: len(updates(direct.ledger)) == 1)
        kafka.producer.produce(name, b"{}", partition=3)
        assert kafka.producer.flush(30) == 0
        has_grown = True
        await until_async(lambda: len(updates(direct.ledger)) == 2)


class Refusing:
    """A consumer whose server refuses the password, as librdkafka reports it: by `error_cb`, within `poll`."""

    def __init__(self, options: dict[str, Any], **_: object) -> None:
        self._note: Callable[[KafkaError], Awaitable[None]] = options["error_cb"]
        self._password = options["sasl.password"]

    async def list_topics(self, *_: object, **__: object) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, "no answer"))

    async def poll(self, _: float) -> None:
        await self._note(KafkaError(KafkaError._AUTHENTICATION, f"{self._password} is refused"))

    async def close(self) -> None:
        pass


async def test_a_refused_password_is_reported_without_it(
    direct: Direct, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("confluent_kafka.aio.AIOConsumer", Refusing)
    monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
    address = "kafka://127.0.0.1:1?security.protocol=SASL_PLAINTEXT&sasl.username=me&sasl.password=${KAFKA_PASSWORD}"
    watch(direct.ledger, MessageQueueTrigger(address, topic=name))
    async with watching(direct):
        await until_async(lambda: "refuses the user or the password" in direct.watcher.error)
    assert "hunter2" not in direct.watcher.error
