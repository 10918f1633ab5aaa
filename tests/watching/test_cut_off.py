"""The other side takes a subscription away, or does not answer: it is noticed, shown, and watched anew (10.2, 10.4)."""

import os
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import aio_pika
import psycopg
import pytest
from aio_pika.abc import AbstractChannel
from fsspec.implementations.local import LocalFileSystem

from assetflow.watchers import FileTrigger, MessageQueueTrigger, SQLTrigger
from tests.environment.waiting import until_async
from tests.watching.outside import RABBIT, Direct, updates, watch, watching

pytestmark = pytest.mark.long
NOTICED = 30.0
POSTGRES = "postgresql://root@127.0.0.1:5432/postgres"


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


@pytest.mark.rule("10.7")
async def test_a_link_to_a_file_is_a_file_and_links_to_folders_are_not_followed(
    direct: Direct, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, elsewhere = tmp_path / "in", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    for name, target in (("root", "/"), ("folder", elsewhere), ("nowhere.json", "gone.json")):
        (folder / name).symlink_to(target)
    for release in "ab":
        (elsewhere / f"{release}.json").write_text("{}")
        os.utime(elsewhere / f"{release}.json", (1, 1))
    watch(direct.ledger, FileTrigger(f"{folder}/**/*.json", every=timedelta(days=1)))

    async def switch(release: str) -> None:
        (folder / "new").symlink_to(elsewhere / f"{release}.json")
        (folder / "new").rename(folder / "link.json")

    async with watching(direct):
        await begins(direct)
        await is_heard(direct, lambda: switch("a"))
        await is_heard(direct, lambda: switch("b"))
    assert [event.extra["path"] for event in updates(direct.ledger)] == [f"{folder}/link.json"] * 2
    assert "cannot be listened to" not in caplog.text


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


@pytest.mark.postgres
async def test_a_query_that_hangs_is_cancelled_at_its_limit(
    direct: Direct, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assetflow.watching.looks.SECONDS_TO_ANSWER", 1.0)
    driver = POSTGRES.replace("postgresql", "postgresql+psycopg")
    watch(direct.ledger, SQLTrigger(driver, f"select '{name}', pg_sleep(100000)", every=timedelta(seconds=1)))
    with closing(psycopg.connect(POSTGRES, autocommit=True)) as connection:

        def sessions() -> int:
            query = "select 1 from pg_stat_activity where query like %s and pid <> pg_backend_pid()"
            return len(connection.execute(query, [f"%{name}%"]).fetchall())

        async with watching(direct):
            await until_async(lambda: "no answer for 1 s" in direct.watcher.error)
            assert direct.watcher.state == "failing"
            # A later look hangs too, and the one before it has gone.
            await until_async(lambda: sessions() == 0)
            await until_async(lambda: sessions() == 1)
        await until_async(lambda: sessions() == 0)
