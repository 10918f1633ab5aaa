"""Ledgers, and queues of the brokers on this machine, each with a name of its own that goes after the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from redis.asyncio import Redis

from assetflow.ledger import Ledger
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
