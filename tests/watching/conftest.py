"""Ledgers, and queues of the brokers on this machine, each with a name of its own that goes after the test."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from redis.asyncio import Redis

from assetflow.ledger import Ledger
from tests.watching.brokers import KafkaCluster, S3Server, SqsServer
from tests.watching.outside import RABBIT, REDIS, Direct


@pytest.fixture(scope="session")
def new_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new ledger's file, made now: each test's ledger is a copy of it."""
    place = tmp_path_factory.mktemp("new-ledger") / "ledger.db"
    Ledger.open(place).close()
    return place


@pytest.fixture
def direct(ledger: Ledger) -> Direct:
    return Direct(ledger)


@pytest.fixture
def name() -> str:
    return f"assetflow-test-{uuid4().hex}"


@pytest.fixture
async def rabbit(name: str) -> AsyncIterator[AbstractChannel]:
    """A channel, with the durable queue `name`."""
    async with await aio_pika.connect(RABBIT) as connection:
        channel = await connection.channel(publisher_confirms=True)
        queue = await channel.declare_queue(name, durable=True)
        yield channel
        await queue.delete(if_unused=False, if_empty=False)


@pytest.fixture
async def redis(name: str) -> AsyncIterator[Redis]:
    client = Redis.from_url(REDIS)
    yield client
    await client.delete(name, f"{name}:assetflow")
    await client.aclose()


@pytest.fixture(scope="session")
def kafka() -> KafkaCluster:
    return KafkaCluster()


@pytest.fixture(scope="session")
def sqs_server() -> Iterator[SqsServer]:
    server = SqsServer()
    yield server
    server.stop()


@pytest.fixture
def sqs(sqs_server: SqsServer, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqsServer]:
    """A server of SQS, with the queue `name`, which this process and its children find."""
    for variable, value in sqs_server.environment.items():
        monkeypatch.setenv(variable, value)
    # moto gives a message also to a client that is gone, and hides it then.
    monkeypatch.setattr("assetflow.watching.kinds.sqs.SECONDS_TO_WAIT", 1)
    sqs_server.create(name)
    yield sqs_server
    sqs_server.delete(name)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """A server of S3, which this process finds."""
    for variable, value in s3_server.environment.items():
        monkeypatch.setenv(variable, value)
    return s3_server


@pytest.fixture
def bucket(s3: S3Server, name: str) -> Iterator[str]:
    """A new bucket in the server of S3."""
    s3.client.create_bucket(Bucket=name)
    yield name
    s3.remove(name, *(each["Key"] for each in s3.client.list_objects_v2(Bucket=name).get("Contents", [])))
    s3.client.delete_bucket(Bucket=name)
