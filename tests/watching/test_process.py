"""`assetflow watcher start`: killed, without Prefect, with a trigger that cannot be read, its database away."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from sqlalchemy import update

from assetflow.crash_points import VARIABLE
from assetflow.ledger import Ledger
from assetflow.ledger.sql.tables import WATCHER
from assetflow.watchers import FileTrigger, MessageQueueTrigger
from tests.environment.waiting import until_async
from tests.watching.outside import NO_ID, RABBIT, Direct, updates, watch, watching

COMMAND = [sys.executable, "-m", "assetflow", "watcher", "start"]


@contextmanager
def process(home: Path, crash_at: str = "") -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, "ASSETFLOW_HOME": str(home), "ASSETFLOW_DATABASE_URL": "", VARIABLE: crash_at}
    with (home / "watcher.log").open("ab") as log:
        started = subprocess.Popen(COMMAND, env=env, stdout=log, stderr=log)
    try:
        yield started
    finally:
        started.terminate()
        started.wait(30)


@pytest.mark.long
@pytest.mark.rabbitmq
@pytest.mark.parametrize("with_ids", [True, False], ids=["ids", "no ids"])
async def test_rule_10_3_killed_between_all_steps(
    ledger: Ledger, rabbit: AbstractChannel, name: str, tmp_path: Path, with_ids: bool
) -> None:
    watch(ledger, MessageQueueTrigger(RABBIT, queue=name, batch=7))
    for number in range(50):
        # A tenth is equal.
        body = b'{"equal": true}' if number % 10 == 0 else f'{{"number": {number}}}'.encode()
        message = aio_pika.Message(body, message_id=str(number) if with_ids else NO_ID, delivery_mode=2)
        await rabbit.default_exchange.publish(message, routing_key=name)
    points = ["between-message-and-ledger", "between-ledger-and-acknowledgement"]
    points += [] if with_ids else ["between-acknowledgement-and-note"]
    for point in points:
        with process(tmp_path, point) as killed:
            await until_async(lambda: killed.poll() is not None)
            assert killed.returncode == -signal.SIGKILL
    with process(tmp_path) as works:
        await until_async(lambda: len(updates(ledger)) >= 50)
        await until_async(lambda: not ledger.reader.watchers.notes(f"amqp://127.0.0.1:5672 {name}"))
    assert works.returncode == 0
    assert len(updates(ledger)) == 50
    left = await rabbit.declare_queue(name, passive=True)
    assert left.declaration_result.message_count == 0


async def test_a_trigger_that_cannot_be_read_fails_alone_until_it_is_redeployed(direct: Direct, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    files = FileTrigger(f"{tmp_path}/*.json", every=timedelta(seconds=1), start="existing")
    for name in ("old", "new"):
        watch(direct.ledger, files, name, f"s3://shop/{name}")
    with direct.ledger.writer.watchers._store.writes() as connection:
        later = {"kind": "queue", "url": "nats://mq", "queue": "q"}
        connection.execute(update(WATCHER).where(WATCHER.c.name == "new").values(trigger=later))
    async with watching(direct):
        await until_async(lambda: [event.uri for event in updates(direct.ledger)] == ["s3://shop/old"])
        new = await until_async(lambda: next((w for w in direct.ledger.reader.watchers.all() if w.error), None))
        assert "'nats' is not known" in new.error
        assert "cannot be read here" in new.trigger.describe()
        watch(direct.ledger, files, "new", "s3://shop/new")
        await until_async(lambda: len(updates(direct.ledger)) == 2)
