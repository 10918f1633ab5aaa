"""`assetflow evaluator start`: run the process that records updates, decides which flows run, and starts the runs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager

from cyclopts import App

from assetflow.cli.process_log import log_to_stderr
from assetflow.cli.values import since_option
from assetflow.evaluator.health import logger
from assetflow.evaluator.process.evaluator import Evaluator, Options
from assetflow.evaluator.process.service import evaluate, freeze_garbage_collection, ready_marker
from assetflow.settings import get_settings

app = App(name="evaluator")

SECONDS_TO_ANSWER = 30.0


@app.command
def start(*, since: str | None = None, take_over: bool = False, once: bool = False) -> None:
    """Record updates of assets, decide which flows run on them, and start their runs, until Ctrl-C or SIGTERM.

    The process can be stopped or killed at any moment: the next evaluator continues where it stopped. On Postgres you
    may start several: one of them works, and when it ends or hangs, another takes over within seconds.

    Parameters
    ----------
    since
        Read again what Prefect has kept since this time, such as 2026-11-20 or 2026-11-20T08:00:00Z (UTC if no zone is
        given). Updates that are already recorded count once.
    take_over
        Use this ledger for a Prefect server that belongs to another ledger. The evaluator of the other ledger stops.
    once
        Process what is waiting, then exit. Fails if another evaluator is running, or Prefect does not answer for 30 s.
    """
    log_to_stderr()
    options = Options(
        since=since_option(since),
        take_over=take_over,
        stand_by=not once,
        patience=SECONDS_TO_ANSWER if once else None,
        ui_url=get_settings().ui_url,
    )
    asyncio.run(_start(options, once=once))


async def _start(options: Options, *, once: bool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def at_work(evaluator: Evaluator) -> Generator[None]:
        freeze_garbage_collection()
        with ready_marker(get_settings().home, evaluator):
            if once:
                tasks.add(asyncio.create_task(_stop_when_settled(evaluator, stop)))
            yield

    await evaluate(options, stop=stop, at_work=at_work)
    await asyncio.gather(*tasks)
    logger.info("stopped")


async def _stop_when_settled(evaluator: Evaluator, stop: asyncio.Event) -> None:
    try:
        await evaluator.worked_off()
    finally:
        stop.set()
