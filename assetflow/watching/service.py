"""Run the watchers of a ledger from start to stop, in a process that exists for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from assetflow.errors import LeaseLost, LedgerForeign, WatchingFailed
from assetflow.evaluator.health import Health, keep_going, logger, one_reason, run_until
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger.lease import LEASE_SECONDS, Role
from assetflow.operations.installation import ASK_EVERY, Decider
from assetflow.prefect_io.connection import read_connection
from assetflow.prefect_io.rest import prefect_api
from assetflow.prefect_io.stored_values import deciding_ledger, read_url_block
from assetflow.watching.looks import Looks
from assetflow.watching.sources import Sources
from assetflow.watching.watching import Watching


async def watch(
    *, place: str | Path | None = None, stop: asyncio.Event | None = None, ready: Callable[[], None] = lambda: None
) -> None:
    """Run the watchers until `stop` is set. On Postgres it stands by while another process runs them.

    Parameters:
        place: the ledger's file or URL; `None` for the one in the settings.
        stop: ends it; `None` to run for ever.
        ready: called when the watchers are known.

    Raises:
        EvaluatorRunning: another process runs the watchers of this ledger, and this one cannot stand by.
        LedgerForeign: this Prefect belongs to another ledger.
        LedgerError: the ledger cannot be opened.
    """
    await run_until(stop, _work(place, ready))


async def _work(place: str | Path | None, ready: Callable[[], None]) -> None:
    while True:
        try:
            async with LedgerThread(place, stand_by=True, role=Role.WATCHERS) as thread:
                await _run(thread, ready)
        except LeaseLost as error:
            logger.warning("%s", error.message)


async def _run(thread: LedgerThread, ready: Callable[[], None]) -> None:
    health = Health()
    sources = Sources(_read_block, lambda: datetime.now(UTC))
    watching = Watching(thread, sources.open, ready)
    with one_reason():
        async with asyncio.TaskGroup() as group:
            group.create_task(keep_going("lease", partial(_keep_lease, thread, health), health))
            group.create_task(keep_going("binding", partial(_check_decider, thread, health), health))
            group.create_task(watching.run())


async def _keep_lease(thread: LedgerThread, health: Health) -> None:
    while True:
        await asyncio.sleep(LEASE_SECONDS / 4)
        await thread.renew_lease()
        health.up("lease")


async def _check_decider(thread: LedgerThread, health: Health) -> None:
    """Stop when another ledger decides for this Prefect: updates would start nothing here."""
    # Without an address, Prefect's client would start a server of its own to be asked.
    decider = Decider(thread.ledger.reader, lambda: deciding_ledger() if read_connection().url else None)
    looks = Looks()
    while True:
        other = await looks.take(decider.other)
        health.up("binding")
        if other is not None:
            raise LedgerForeign(
                f"this Prefect belongs to the ledger {other}, which has its own watchers",
                fix="Start `assetflow watcher` with that ledger (ASSETFLOW_HOME, ASSETFLOW_DATABASE_URL)",
            )
        await asyncio.sleep(ASK_EVERY)


async def _read_block(name: str) -> str:
    async with prefect_api() as api:
        url = await read_url_block(api, name)
    if url is None:
        raise WatchingFailed(f"Prefect has no block {name} that holds a URL", fix="Create a Secret block of this name")
    return url
