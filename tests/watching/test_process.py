"""`assetflow watcher start`: killed, without Prefect, with a trigger that cannot be read, its database away."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel

from assetflow.crash_points import VARIABLE
from assetflow.ledger import Ledger
from assetflow.watchers import MessageQueueTrigger
from tests.environment.waiting import until_async
from tests.watching.outside import NO_ID, RABBIT, updates, watch

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
    assert (await rabbit.declare_queue(name, passive=True)).declaration_result.message_count == 0
