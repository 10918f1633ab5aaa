"""Our own kinds of queues pass the suite that authors of others run, and others are found by their entry point."""

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from textwrap import dedent

import aio_pika
import pytest
from redis import Redis

from assetflow.core.values.triggers import other_kinds
from assetflow.errors import InvalidWatcher
from assetflow.testing.queues import QueueSuite
from assetflow.watchers import Message, MessageQueueTrigger
from assetflow.watching.kinds import BrokerQueue
from assetflow.watching.kinds.kafka import open_kafka
from assetflow.watching.kinds.rabbitmq import open_rabbitmq
from assetflow.watching.kinds.redis import open_redis
from assetflow.watching.kinds.sqs import open_sqs
from tests.environment.waiting import until_async
from tests.watching.brokers import SQS, KafkaCluster, SqsServer
from tests.watching.outside import NO_ID, RABBIT, REDIS, Direct, updates, watch, watching

Opened = AbstractAsyncContextManager[BrokerQueue]


@pytest.mark.rabbitmq
@pytest.mark.usefixtures("rabbit")
class TestRabbitMQ(QueueSuite):
    @pytest.fixture(autouse=True)
    def _name(self, name: str) -> None:
        self.name = name

    def open_queue(self) -> Opened:
        return open_rabbitmq(MessageQueueTrigger(RABBIT, queue=self.name), RABBIT)

    def send(self, bodies: Sequence[bytes]) -> None:
        asyncio.run(self._publish(bodies))

    async def _publish(self, bodies: Sequence[bytes]) -> None:
        async with await aio_pika.connect(RABBIT) as connection:
            channel = await connection.channel(publisher_confirms=True)
            for body in bodies:
                message = aio_pika.Message(body, message_id=NO_ID)
                await channel.default_exchange.publish(message, routing_key=self.name)


@pytest.mark.redis
class TestRedisList(QueueSuite):
    @pytest.fixture(autouse=True)
    def _name(self, name: str, redis: object) -> None:  # noqa: ARG002  it deletes the list
        self.name = name

    def open_queue(self) -> Opened:
        return open_redis(MessageQueueTrigger(REDIS, queue=self.name), REDIS)

    def send(self, bodies: Sequence[bytes]) -> None:
        with Redis.from_url(REDIS) as client:
            client.lpush(self.name, *bodies)


@pytest.mark.redis
class TestRedisStream(QueueSuite):
    @pytest.fixture(autouse=True)
    def _name(self, name: str, redis: object) -> None:  # noqa: ARG002  it deletes the stream
        self.name = name

    def open_queue(self) -> Opened:
        return open_redis(MessageQueueTrigger(REDIS, stream=self.name), REDIS)

    def send(self, bodies: Sequence[bytes]) -> None:
        with Redis.from_url(REDIS) as client:
            for body in bodies:
                client.xadd(self.name, {"body": body})

    def content_of(self, message: Message) -> bytes:
        return json.dumps(json.loads(message.body)["body"]).encode()


class TestSqs(QueueSuite):
    @pytest.fixture(autouse=True)
    def _name(self, name: str, sqs: SqsServer) -> None:
        self.name, self.server = name, sqs

    def open_queue(self) -> Opened:
        return open_sqs(MessageQueueTrigger(SQS, queue=self.name), SQS)

    def send(self, bodies: Sequence[bytes]) -> None:
        self.server.send(self.name, *bodies)


class TestKafka(QueueSuite):
    @pytest.fixture(autouse=True)
    def _name(self, name: str, kafka: KafkaCluster) -> None:
        self.name, self.cluster = name, kafka

    def open_queue(self) -> Opened:
        return open_kafka(MessageQueueTrigger(self.cluster.url, topic=self.name), self.cluster.url)

    def send(self, bodies: Sequence[bytes]) -> None:
        self.cluster.send(self.name, *bodies)


NATS = """
    import asyncio
    from contextlib import asynccontextmanager
    from assetflow.watchers import Message

    class Memory:
        source, label, waiting = "nats://mq orders", "NATS orders", [b"{}"]

        async def take(self, seconds=0.0):
            while not self.waiting:
                await asyncio.sleep(0.01)
            return [Message(each, "1") for each in self.waiting]

        async def left(self):
            return []

        async def acknowledge(self, refused):
            self.waiting.clear()

        async def depth(self):
            return len(self.waiting)

    @asynccontextmanager
    async def open_queue(trigger, url):
        yield Memory()
"""


async def test_a_package_brings_another_kind(direct: Direct, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidWatcher, match=r"entry point `assetflow\.watchers`"):
        MessageQueueTrigger("nats://mq", queue="orders")
    (tmp_path / "shop_nats.py").write_text(dedent(NATS))
    package = tmp_path / "shop_nats-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-nats\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[assetflow.watchers]\nnats = shop_nats:open_queue\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    other_kinds.cache_clear()
    try:
        watch(direct.ledger, MessageQueueTrigger("nats://mq", queue="orders"))
        async with watching(direct):
            await until_async(lambda: len(updates(direct.ledger)) == 1)
        assert updates(direct.ledger)[0].origin.by == "NATS orders, message 1"
    finally:
        other_kinds.cache_clear()
