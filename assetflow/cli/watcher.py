"""`assetflow watcher start`: run the process that watches queues and files, and records updates of assets."""

from __future__ import annotations

import asyncio
import signal

from cyclopts import App

from assetflow.cli.process_log import log_to_stderr
from assetflow.evaluator.health import logger
from assetflow.evaluator.process.service import freeze_garbage_collection
from assetflow.watching.sources import watch

app = App(name="watcher")


@app.command
def start() -> None:
    """Run the watchers of all deployments, until Ctrl-C or SIGTERM.

    The process can be stopped or killed at any moment: the next one continues where it stopped. On Postgres you may
    start several: one of them works, and when it ends or hangs, another takes over within seconds.
    """
    log_to_stderr()
    asyncio.run(_start())


async def _start() -> None:
    stop, is_ready = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def ready() -> None:
        if not is_ready.is_set():
            is_ready.set()
            freeze_garbage_collection()
            logger.info("ready: the watchers of all deployments run here")

    await watch(stop=stop, ready=ready)
    logger.info("stopped")
