"""Five queues of real brokers, reached by the process that watches through cables that can be cut."""

import asyncio
import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import aio_pika
import confluent_kafka
from redis import Redis

from assetflow.core.values.triggers import MessageQueueTrigger
from tests.faults.cable import Cable
from tests.watching.brokers import SQS, KafkaCluster, SqsServer
from tests.watching.outside import NO_ID, RABBIT, REDIS

BROKERS = 3


class FragileCluster(KafkaCluster):
    """The mock cluster of librdkafka, whose brokers can go down."""

    def __init__(self) -> None:
        folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
        self._library = ctypes.CDLL(str(next(folder.glob("librdkafka*.so*"))))
        self._cluster = self._make()
        bootstrap = self._call("rd_kafka_mock_cluster_bootstraps", ctypes.c_char_p, self._cluster).decode()
        self.producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        )
        self.url = f"kafka://{bootstrap}"

    def cut(self) -> None:
        """Break all connections."""
        for change in ("rd_kafka_mock_broker_set_down", "rd_kafka_mock_broker_set_up"):
            for broker in range(1, BROKERS + 1):
                assert not self._call(change, ctypes.c_int, self._cluster, ctypes.c_int32(broker))

    def _make(self) -> ctypes.c_void_p:
        options = self._call("rd_kafka_conf_new", ctypes.c_void_p)
        said = ctypes.create_string_buffer(200)
        client = self._call("rd_kafka_new", ctypes.c_void_p, ctypes.c_int(0), ctypes.c_void_p(options), said, 200)
        made = self._call("rd_kafka_mock_cluster_new", ctypes.c_void_p, ctypes.c_void_p(client), ctypes.c_int(BROKERS))
        return ctypes.c_void_p(made)

    def _call(self, function: str, answers: Any, *given: Any) -> Any:
        called = getattr(self._library, function)
        called.restype = answers
        return called(*given)


class Brokers:
    """The five queues.

    Attributes:
        triggers: what watches each queue, by the name of the queue's kind.
        environment: what the process that watches needs to reach them.
    """

    def __init__(self) -> None:
        self.name = f"assetflow-faults-{uuid4().hex}"
        self._sqs = SqsServer()
        self._kafka = FragileCluster()
        self._redis = Redis.from_url(REDIS)
        endpoint = self._sqs.environment["AWS_ENDPOINT_URL_SQS"]
        self._cables = {"rabbitmq": Cable(5672), "redis": Cable(6379), "sqs": Cable(int(endpoint.rpartition(":")[2]))}
        self.environment = {
            **self._sqs.environment,
            "AWS_ENDPOINT_URL_SQS": f"http://127.0.0.1:{self._cables['sqs'].port}",
        }
        rabbit = f"amqp://127.0.0.1:{self._cables['rabbitmq'].port}/"
        redis = f"redis://127.0.0.1:{self._cables['redis'].port}/15"
        self.triggers = {
            "rabbitmq": MessageQueueTrigger(rabbit, queue=self.name),
            "stream": MessageQueueTrigger(redis, stream=f"{self.name}-stream", within=timedelta(seconds=1)),
            "list": MessageQueueTrigger(redis, queue=self.name),
            "sqs": MessageQueueTrigger(SQS, queue=self.name),
            "kafka": MessageQueueTrigger(self._kafka.url, topic=self.name, within=timedelta(seconds=1)),
        }
        self.cuts: Sequence[Callable[[], None]] = [*(each.cut for each in self._cables.values()), self._kafka.cut]
        self._sqs.create(self.name)
        asyncio.run(self._declare())

    def send(self, kind: str, bodies: Sequence[bytes]) -> None:
        """Send messages, and return when the broker has confirmed them all."""
        {
            "rabbitmq": self._to_rabbitmq,
            "stream": self._to_stream,
            "list": partial(self._redis.lpush, self.name),
            "sqs": partial(self._sqs.send, self.name),
            "kafka": partial(self._kafka.send, self.name),
        }[kind](*bodies)

    def left(self) -> int:
        """Return how many messages RabbitMQ and Redis have that are not acknowledged."""
        groups: Any = self._redis.xinfo_groups(f"{self.name}-stream")
        of_stream = sum(int(each["pending"]) + int(each["lag"] or 0) for each in groups)
        of_list: Any = self._redis.llen(self.name), self._redis.llen(f"{self.name}:assetflow")
        return asyncio.run(self._in_rabbitmq()) + of_stream + sum(of_list)

    def close(self) -> None:
        for each in self._cables.values():
            each.close()
        self._redis.delete(self.name, f"{self.name}-stream", f"{self.name}:assetflow")
        self._redis.close()
        self._sqs.stop()
        with suppress(Exception):
            asyncio.run(self._delete())

    def _to_stream(self, *bodies: bytes) -> None:
        for body in bodies:
            self._redis.xadd(f"{self.name}-stream", {"body": body})

    def _to_rabbitmq(self, *bodies: bytes) -> None:
        asyncio.run(self._publish(bodies))

    async def _publish(self, bodies: Sequence[bytes]) -> None:
        async with await aio_pika.connect(RABBIT) as connection:
            channel = await connection.channel(publisher_confirms=True)
            for number, body in enumerate(bodies):
                # Every second message has no id.
                message = aio_pika.Message(body, message_id=NO_ID if number % 2 else str(uuid4()), delivery_mode=2)
                await channel.default_exchange.publish(message, routing_key=self.name)

    async def _declare(self) -> None:
        async with await aio_pika.connect(RABBIT) as connection:
            await (await connection.channel()).declare_queue(self.name, durable=True)

    async def _in_rabbitmq(self) -> int:
        async with await aio_pika.connect(RABBIT) as connection:
            declared = await (await connection.channel()).declare_queue(self.name, passive=True)
            return declared.declaration_result.message_count or 0

    async def _delete(self) -> None:
        async with await aio_pika.connect(RABBIT) as connection:
            await (await connection.channel()).queue_delete(self.name)
