"""The other side takes a subscription away, or does not answer: it is noticed, shown, and watched anew (10.2, 10.4)."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from fsspec.implementations.local import LocalFileSystem

from assetflow.watchers import FileTrigger, MessageQueueTrigger
from tests.environment.waiting import until_async
from tests.watching.outside import RABBIT, Direct, updates, watch, watching

pytestmark = pytest.mark.long
NOTICED = 30.0


async def begins(direct: Direct) -> None:
    """Wait until the watcher has told how much waits: then it waits for something new."""
    await until_async(lambda: direct.watcher.lag is not None)


async def is_heard(direct: Direct, send: Callable[[], Awaitable[object]]) -> None:
    """Check that what is sent now is an update soon."""
    before = len(updates(direct.ledger))
    await send()
    await until_async(lambda: len(updates(direct.ledger)) > before, seconds=NOTICED)


@pytest.mark.rabbitmq
async def test_a_queue_of_rabbitmq_that_is_made_anew(direct: Direct, rabbit: AbstractChannel, name: str) -> None:
    watch(direct.ledger, MessageQueueTrigger(RABBIT, queue=name))

    async def send() -> None:
        await rabbit.default_exchange.publish(aio_pika.Message(b"{}"), routing_key=name)

    async with watching(direct):
        await is_heard(direct, send)
        queue = await rabbit.get_queue(name)
        consumed = await until_async(lambda: _consumers(rabbit, name))
        assert consumed == 1
        await queue.delete(if_unused=False, if_empty=False)
        await rabbit.declare_queue(name, durable=True)
        await is_heard(direct, send)
        await begins(direct)
        assert direct.watcher.state == "watching"


async def _consumers(rabbit: AbstractChannel, name: str) -> int:
    return (await rabbit.declare_queue(name, passive=True)).declaration_result.consumer_count or 0


async def test_rule_10_7_a_missing_folder_is_shown_and_all_that_comes_is_new(direct: Direct, tmp_path: Path) -> None:
    watch(direct.ledger, FileTrigger(f"{tmp_path}/in/*.json", every=timedelta(days=1)))
    async with watching(direct):
        await until_async(lambda: f"there is no folder or bucket {tmp_path}/in" in direct.watcher.error)
        assert direct.watcher.state == "failing"
        (tmp_path / "in").mkdir()
        (tmp_path / "in/a.json").write_text("{}")
        await until_async(lambda: len(updates(direct.ledger)) == 1, seconds=NOTICED)
        assert direct.watcher.state == "watching"


async def test_a_file_system_that_hangs_is_shown_and_looked_at_once(
    direct: Direct, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assetflow.watching.looks.SECONDS_TO_ANSWER", 0.2)
    answers, asked = Event(), 0
    lists = LocalFileSystem.ls

    def hang(self: LocalFileSystem, path: str, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        answers.wait()
        return lists(self, path, **options)

    monkeypatch.setattr(LocalFileSystem, "ls", hang)
    watch(direct.ledger, FileTrigger(f"{tmp_path}/*.json", every=timedelta(seconds=1), start="existing"))
    (tmp_path / "a.json").write_text("{}")
    async with watching(direct):
        await until_async(lambda: "no answer" in direct.watcher.error)
        await until_async(lambda: "still waits for an answer" in direct.watcher.error)
        assert asked == 1
        answers.set()
        await until_async(lambda: len(updates(direct.ledger)) == 1)
