"""`assetflow evaluator start` and `watcher start`: processes that run for long, and the log that they write."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

from cyclopts import App

from assetflow.cli.values import since_option
from assetflow.core.values.addresses import without_passwords
from assetflow.core.values.words import shown
from assetflow.evaluator.health import logger
from assetflow.evaluator.process.evaluator import Evaluator, Options
from assetflow.evaluator.process.service import evaluate, freeze_garbage_collection, ready_marker
from assetflow.settings import get_settings

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def log_to_stderr() -> None:
    """Send assetflow's log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonLines()
        if get_settings().log_format == "json"
        else Lines("%(asctime)s  %(levelname)-7s  %(message)s", "%H:%M:%S")
    )
    ours = logging.getLogger("assetflow")
    ours.handlers = [handler]
    ours.setLevel(logging.INFO)
    ours.propagate = False


class Lines(logging.Formatter):
    """Formats a record as a line of text, without passwords in addresses: libraries put those into their errors.

    Names come from users: what would control a terminal or reverse text is written as an escape.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the name of logging)
        return shown(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return without_passwords(super().format(record))


class JsonLines(logging.Formatter):
    """Formats a record as a JSON object: time, level, logger, message, and the ids that the record is about.

    The ids are in `consumer`, `decision`, `flow_run` and `recordings`: search for one to find all its lines.
    """

    def format(self, record: logging.LogRecord) -> str:
        about = {name: value for name, value in vars(record).items() if name not in _ORDINARY}
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": shown(without_passwords(record.getMessage()), keep="\n"),
            **about,
        }
        if record.exc_info:
            line["traceback"] = without_passwords(self.formatException(record.exc_info))
        return json.dumps(line, default=str, ensure_ascii=False)


def stopped_by_signals() -> asyncio.Event:
    """Return an event of the running loop that Ctrl-C and SIGTERM set."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


evaluator_app = App(name="evaluator")

SECONDS_TO_ANSWER = 30.0


@evaluator_app.command(name="start")
def start_evaluator(*, since: str | None = None, take_over: bool = False, once: bool = False) -> None:
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
    asyncio.run(_run_evaluator(options, once=once))


async def _run_evaluator(options: Options, *, once: bool) -> None:
    stop = stopped_by_signals()
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


watcher_app = App(name="watcher")


@watcher_app.command(name="start")
def start_watcher() -> None:
    """Run the watchers of all deployments, until Ctrl-C or SIGTERM.

    The process can be stopped or killed at any moment: the next one continues where it stopped. On Postgres you may
    start several: one of them works, and when it ends or hangs, another takes over within seconds.
    """
    log_to_stderr()
    asyncio.run(_run_watcher())


async def _run_watcher() -> None:
    # Import here what the evaluator does not need.
    from assetflow.watching.sources import watch

    stop, is_ready = stopped_by_signals(), asyncio.Event()

    def ready() -> None:
        if not is_ready.is_set():
            is_ready.set()
            freeze_garbage_collection()
            logger.info("ready: the watchers of all deployments run here")

    await watch(stop=stop, ready=ready)
    logger.info("stopped")
