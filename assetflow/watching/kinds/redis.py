"""Streams and lists of Redis, by redis-py.

A stream is read by a consumer group, which remembers what is not acknowledged. From a list, messages are moved to a
second list beside it, whose elements stay until they are recorded.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Awaitable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from assetflow.core.values.addresses import source_of_url, without_user
from assetflow.core.values.triggers import MessageQueueTrigger
from assetflow.core.watchers.intake import Message
from assetflow.errors import WatchingFailed
from assetflow.watching.kinds import BrokerQueue, needing

if TYPE_CHECKING:
    from redis.asyncio import Redis

PORTS = {"redis": 6379, "rediss": 6379}
CONSUMER = "assetflow"
SECONDS_TO_CONNECT = 10.0
SECONDS_TO_BLOCK = 5

# An entry of a stream: its id and its fields; `None` if it was deleted.
Entry = tuple[bytes, "dict[bytes, bytes] | None"]


class RedisStream(BrokerQueue):
    """An open stream of Redis, read by a consumer group; see `BrokerQueue`."""

    def __init__(self, redis: Redis, trigger: MessageQueueTrigger, source: str) -> None:
        self._stream, self._group, self._batch = trigger.stream or "", trigger.group, trigger.batch
        self.source = f"{source} stream {self._stream}"
        self.label = f"Redis {self._stream}"
        self._redis = redis
        self._has_pending = True
        self._ids: list[str] = []

    async def begin(self) -> None:
        """Make the consumer group, from the first entry on; Redis makes the stream if there is none. Contract 10.4."""
        from redis.exceptions import ResponseError

        try:
            await self._redis.xgroup_create(self._stream, self._group, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    async def take(self, seconds: float = 0.0) -> Sequence[Message]:
        """Return the next entries, at first those that were delivered before and not acknowledged."""
        found = await self._read("0", SECONDS_TO_BLOCK, self._batch) if self._has_pending else []
        self._has_pending = bool(found)
        while not found:
            found = await self._read(">", SECONDS_TO_BLOCK, self._batch)
        for wait in time_left(seconds):
            if len(found) >= self._batch:
                break
            found += await self._read(">", wait, self._batch - len(found))
        self._ids = [number.decode() for number, _ in found]
        return [_message(*entry) for entry in found]

    async def _read(self, after: str, seconds: float, count: int) -> list[Entry]:
        streams, block = cast(Any, {self._stream: after}), max(1, int(min(seconds, SECONDS_TO_BLOCK) * 1000))
        return _entries(await self._redis.xreadgroup(self._group, CONSUMER, streams, count=count, block=block))

    async def acknowledge(self, refused: Collection[int]) -> None:  # noqa: ARG002  (Redis has no dead letters)
        """Acknowledge the entries."""
        await self._redis.xack(self._stream, self._group, *self._ids)

    async def depth(self) -> int:
        """Return how many entries the group has not acknowledged yet."""
        groups: Any = await self._redis.xinfo_groups(self._stream)
        mine = (each for each in groups if each["name"] == self._group.encode())
        return sum(int(each.get("lag") or 0) + int(each["pending"]) for each in mine)


class RedisList(BrokerQueue):
    """An open list of Redis; see `BrokerQueue`. Messages are taken from its right end, where LPUSH's oldest stand."""

    def __init__(self, redis: Redis, trigger: MessageQueueTrigger, source: str) -> None:
        self._list, self._batch = trigger.queue or "", trigger.batch
        self._taken = f"{self._list}:assetflow"
        self.source = f"{source} list {self._list}"
        self.label = f"Redis {self._list}"
        self._redis = redis

    async def take(self, seconds: float = 0.0) -> Sequence[Message]:
        """Return the messages that are moved to the second list, and those that were left there."""
        while not (found := await self.left()):
            if await self._move(SECONDS_TO_BLOCK):
                await self._move_more(seconds)
        return found

    async def left(self) -> Sequence[Message]:
        """Return the messages in the second list."""
        bodies = await cast("Awaitable[list[bytes]]", self._redis.lrange(self._taken, 0, -1))
        return [Message(body, None, redelivered=True) for body in reversed(bodies)]

    async def acknowledge(self, refused: Collection[int]) -> None:  # noqa: ARG002  (Redis has no dead letters)
        """Delete the second list."""
        await self._redis.delete(self._taken)

    async def depth(self) -> int:
        """Return how many messages wait in the list."""
        return await self._redis.llen(self._list)

    async def _move(self, seconds: float) -> bool:
        wait = max(0.001, min(seconds, SECONDS_TO_BLOCK))
        moving = self._redis.blmove(self._list, self._taken, cast(int, wait), "RIGHT", "LEFT")
        return await cast("Awaitable[Any]", moving) is not None

    async def _move_more(self, seconds: float) -> None:
        async with self._redis.pipeline(transaction=False) as pipeline:
            for _ in range(self._batch - 1):
                pipeline.lmove(self._list, self._taken, "RIGHT", "LEFT")
            moved = 1 + sum(each is not None for each in await pipeline.execute())
        for wait in time_left(seconds):
            if moved >= self._batch:
                break
            moved += await self._move(wait)


def time_left(seconds: float) -> Iterator[float]:
    """Yield how many seconds are left, again and again until none are."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        yield left


def _entries(answer: object) -> list[Entry]:
    """Return the entries that Redis answers for one stream."""
    streams = cast("list[tuple[bytes, list[Entry]]]", answer or [])
    return [entry for _, entries in streams for entry in entries]


def _message(number: bytes, fields: dict[bytes, bytes] | None) -> Message:
    if not fields:
        return Message(b"", number.decode(), gone="the entry was trimmed or deleted before it was read")
    return Message(_document(fields), number.decode())


def _document(fields: dict[bytes, bytes]) -> bytes:
    """Return the fields of an entry as one JSON object. A field that holds a JSON object or list is read as that."""
    try:
        return json.dumps({_text(name): _value(value) for name, value in fields.items()}).encode()
    except RecursionError:
        # What can just be read may be nested too deep to be written.
        return json.dumps({_text(name): _text(value) for name, value in fields.items()}).encode()


def _value(value: bytes) -> object:
    """Return the object or list that a field holds, else its text: also if it is nested too deep to be read."""
    if value[:1] in (b"{", b"["):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return _text(value)


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


@asynccontextmanager
async def open_redis(trigger: MessageQueueTrigger, url: str) -> AsyncGenerator[RedisStream | RedisList]:
    """Open a stream or a list of Redis.

    Raises:
        WatchingFailed: the server does not answer, or refuses the password; the key is of another type; redis-py is
            missing.
    """
    with needing("redis-py", "redis", without_user(url)):
        from redis import asyncio as redis
        from redis import exceptions
    where, source = without_user(url), source_of_url(url, PORTS)
    timeouts = {"socket_connect_timeout": SECONDS_TO_CONNECT, "socket_timeout": 4 * SECONDS_TO_BLOCK}
    client = redis.from_url(url, protocol=2, **timeouts)
    try:
        if trigger.stream is None:
            yield RedisList(client, trigger, source)
            return
        stream = RedisStream(client, trigger, source)
        await stream.begin()
        yield stream
    except exceptions.AuthenticationError as error:
        raise WatchingFailed(
            "Redis refuses the user or the password", where=where, fix="Correct the address"
        ) from error
    except exceptions.RedisError as error:
        raise WatchingFailed(f"Redis fails: {error}", where=where) from error
    finally:
        await client.aclose()
