"""Run an evaluator from start to stop, in a process that exists for it."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from assetflow.errors import LeaseLost
from assetflow.evaluator.health import logger, run_until
from assetflow.evaluator.process.evaluator import Evaluator, Options, open_evaluator, utc_now
from assetflow.settings import make_private, make_private_folder

# The number of objects made and not freed after which Python collects garbage: more than a batch of updates needs.
OBJECTS_BETWEEN_COLLECTIONS = 100_000

AtWork = Callable[[Evaluator], AbstractContextManager[object]]


async def evaluate(
    options: Options | None = None,
    *,
    place: str | Path | None = None,
    stop: asyncio.Event | None = None,
    at_work: AtWork = nullcontext,
) -> None:
    """Run an evaluator until `stop` is set. On Postgres it stands by while another one is running.

    Parameters:
        place: the ledger's file or URL; `None` for the one in the settings.
        stop: ends the evaluator; `None` to run for ever.
        at_work: returns a context that is entered when the deployments are known and missed updates are recorded, and
            left when the evaluator ends or another one has taken over.

    Raises:
        EvaluatorRunning: another evaluator is running on this ledger, or took over, and this one cannot stand by.
        LedgerForeign: this Prefect belongs to another ledger.
        LedgerError: the ledger cannot be opened.
        InvalidCall: `options.since` is before a time up to which the ledger was pruned.
        InvalidSettings: a module of listeners cannot be imported, or Prefect is to deliver without an evaluator.
        PrefectUnreachable: no Prefect server is configured, or it does not answer for as long as the options say.
    """
    await run_until(stop, _work(options or Options(), place, at_work))


async def _work(options: Options, place: str | Path | None, at_work: AtWork) -> None:
    while True:
        try:
            async with open_evaluator(options, place=place) as evaluator:
                with ExitStack() as contexts:
                    await evaluator.run(partial(_enter, contexts, at_work, evaluator))
        except LeaseLost as error:
            logger.warning("%s", error.message)
        # A replay and a takeover happen once, not after each lost lease.
        options = replace(options, since=None, take_over=False)


def _enter(contexts: ExitStack, at_work: AtWork, evaluator: Evaluator) -> None:
    contexts.enter_context(at_work(evaluator))


@contextmanager
def ready_marker(home: Path, evaluator: Evaluator) -> Generator[Path]:
    """Log that the evaluator is ready, and keep the file `evaluator.json` in `home` for those who wait for it."""
    logger.info("ready: updates of assets in %s start flows", evaluator.api_url)
    marker = home / "evaluator.json"
    about = {"pid": os.getpid(), "ledger": str(evaluator.ledger_id), "prefect": evaluator.api_url}
    content = json.dumps(about | {"since": utc_now().isoformat()})
    try:
        make_private_folder(home)
        make_private(marker)
        marker.write_text(content)
    except OSError as error:
        # The evaluator can work on a full disk.
        logger.warning("%s cannot be written, so that others cannot see that this is ready: %s", marker, error)
    try:
        yield marker
    finally:
        # Another process with the same home may have taken over meanwhile.
        if marker.exists() and marker.read_text() == content:
            marker.unlink()


def freeze_garbage_collection() -> None:
    """Exclude the objects that exist now from garbage collection, and collect less often from now on.

    Call this when the evaluator or the server is ready: code and consumers stay for as long as the process. Otherwise
    Python would walk through them again and again, which is a third of the work while updates are recorded, and may
    delay an answer of the server by 200 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, 20, 50)
