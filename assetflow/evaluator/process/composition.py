"""Open an evaluator: the ledger under its lease, for a Prefect that belongs to the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

from assetflow.errors import InvalidCall, PrefectUnreachable
from assetflow.evaluator.health import keep_going, logger
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.process.binding import Binding
from assetflow.evaluator.process.evaluator import Evaluator, Options
from assetflow.evaluator.process.listeners import ListenerThread
from assetflow.evaluator.process.prune import CURSOR as PRUNED
from assetflow.evaluator.process.rebuild import Rebuild
from assetflow.listeners import load_listeners
from assetflow.prefect_io.rest import PrefectApi, prefect_api
from assetflow.settings import get_settings


@asynccontextmanager
async def open_evaluator(
    options: Options | None = None, *, place: str | Path | None = None
) -> AsyncGenerator[Evaluator]:
    """Open an evaluator that holds the lease of its ledger, for a Prefect that belongs to the ledger.

    Parameters:
        place: the ledger's file or URL; `None` for the one in the settings.

    Raises:
        EvaluatorRunning, LedgerForeign, LedgerError, InvalidCall, InvalidSettings, PrefectUnreachable: as `evaluate`.
    """
    options = options or Options()
    listeners = load_listeners(get_settings().listeners)
    async with LedgerThread(place, stand_by=options.stand_by, ahead=options.ahead) as ledger, prefect_api() as api:
        binding = Binding(api, ledger)
        await _bind(api, ledger, binding, options)
        rebuild = Rebuild(ledger, api)
        floor = await _floor(ledger, options.since, rebuild)
        with ListenerThread(ledger.ledger, listeners) as listener_thread:
            yield Evaluator(ledger, api, binding, listener_thread, rebuild, floor, options)


async def _bind(api: PrefectApi, ledger: LedgerThread, binding: Binding, options: Options) -> None:
    """Make sure that ledger and Prefect belong together, as soon as Prefect answers."""
    bind = partial(binding.bind, take_over=options.take_over)
    try:
        async with asyncio.timeout(options.patience):
            await keep_going("Prefect", bind, options.health)
    except TimeoutError as error:
        raise PrefectUnreachable(
            f"Prefect did not answer in {options.patience:g} s",
            where=api.url,
            fix="Start it again when the Prefect server is up; updates are kept until then",
        ) from error
    options.health.up("Prefect")
    await ledger.call(ledger.writer.set_prefect_api_url, api.url)


async def _floor(ledger: LedgerThread, since: datetime | None, rebuild: Rebuild) -> datetime:
    """Return the time before which updates are not recorded: the ledger's creation, or an earlier `since`."""
    floor = await ledger.cursor("floor") or ledger.ledger.created
    if since is None:
        return floor
    pruned = await ledger.cursor(PRUNED)
    if pruned is not None and since < pruned:
        raise InvalidCall(
            f"updates from before {pruned:%Y-%m-%d %H:%M} UTC were pruned from this ledger, and would count again",
            where="--since",
            fix=f"Replay from {pruned:%Y-%m-%dT%H:%M}Z or later",
        )
    logger.info("replaying updates since %s", since.isoformat())
    await rebuild.plan(since)
    for name in ("artifacts", "events"):
        await ledger.set_cursor(name, since)
    await ledger.set_cursor("floor", min(floor, since))
    return min(floor, since)
