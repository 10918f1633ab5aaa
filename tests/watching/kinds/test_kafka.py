"""Kafka: a topic that is missing or grows, a password that is refused, and servers that go."""

from contextlib import closing
from typing import Any

import pytest
from confluent_kafka.aio import AIOConsumer

from assetflow.watchers import MessageQueueTrigger
from tests.environment.waiting import until_async
from tests.watching.brokers import KafkaCluster
from tests.watching.kafka_password import PasswordServer
from tests.watching.outside import Direct, updates, watch, watching

pytestmark = pytest.mark.long


async def test_a_missing_topic_is_told_and_read_once_it_is_there(
    direct: Direct, kafka: KafkaCluster, name: str
) -> None:
    watch(direct.ledger, MessageQueueTrigger(kafka.url, topic=name))
    async with watching(direct):
        await until_async(lambda: f"Kafka has no topic '{name}'" in direct.watcher.error)
        kafka.send(name, b"{}")
        await until_async(lambda: len(updates(direct.ledger)) == 1)
        assert direct.watcher.state == "watching"


async def test_partitions_that_are_added_are_read(
    direct: Direct, kafka: KafkaCluster, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assetflow.watching.watching.SECONDS_BETWEEN_LAGS", 0.1)
    kafka.send(name, b"{}")
    lists, has_grown = AIOConsumer.list_topics, False

    async def list_topics(self: AIOConsumer, topic: str, **options: Any) -> Any:
        told = await lists(self, topic, **options)
        # The mock cluster gives each topic four partitions, and cannot add any.
        for number in (2, 3) if not has_grown else ():
            del told.topics[topic].partitions[number]
        return told

    monkeypatch.setattr(AIOConsumer, "list_topics", list_topics)
    watch(direct.ledger, MessageQueueTrigger(kafka.url, topic=name))
    async with watching(direct):
        await until_async(lambda: len(updates(direct.ledger)) == 1)
        kafka.producer.produce(name, b"{}", partition=3)
        assert kafka.producer.flush(30) == 0
        has_grown = True
        await until_async(lambda: len(updates(direct.ledger)) == 2)


async def test_a_refused_password_is_told_without_it(
    direct: Direct, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assetflow.watching.kinds.kafka.SECONDS_TO_ANSWER", 2.0)
    with closing(PasswordServer()) as server:
        monkeypatch.setenv("KAFKA_PASSWORD", "hunter2")
        address = (
            f"kafka://{server.address}?security.protocol=SASL_PLAINTEXT&sasl.mechanism=PLAIN"
            "&sasl.username=me&sasl.password=${KAFKA_PASSWORD}"
        )
        watch(direct.ledger, MessageQueueTrigger(address, topic=name))
        async with watching(direct):
            await until_async(lambda: "refuses the user or the password" in direct.watcher.error)
    assert set(server.told) == {"hunter2"}
    assert "hunter2" not in direct.watcher.error


async def test_servers_that_go_away_are_told(direct: Direct, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assetflow.watching.watching.SECONDS_BETWEEN_LAGS", 0.1)
    cluster = KafkaCluster()
    cluster.send(name, b"{}")
    watch(direct.ledger, MessageQueueTrigger(cluster.url, topic=name))
    async with watching(direct):
        # Nothing waits: the offset is committed.
        await until_async(lambda: direct.watcher.lag == 0)
        # The cluster lives in the producer.
        del cluster
        await until_async(lambda: direct.watcher.state == "failing")
    assert "no server of Kafka can be reached" in direct.watcher.error
