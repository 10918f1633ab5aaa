"""Kafka: a topic that is missing or grows, a password that is refused, and servers that go."""

import pytest

from assetflow.watchers import MessageQueueTrigger
from tests.environment.waiting import until_async
from tests.watching.brokers import KafkaCluster
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
