"""An evaluator from start to stop: ledger, lease, Prefect, binding, and the marker that says it is ready."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path

from assetflow.errors import InvalidSettings
from assetflow.evaluator import binding
from assetflow.evaluator.evaluator import Evaluator, Options, utc_now
from assetflow.evaluator.health import Health, keep_going, logger
from assetflow.evaluator.ledger_consumers import LedgerConsumers
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.ledger_timers import LedgerTimers
from assetflow.evaluator.listening import Listening
from assetflow.evaluator.rebuild import Rebuild
from assetflow.evaluator.registry import Registry
from assetflow.listeners import load_listeners
from assetflow.prefect_io.rest import PrefectApi, prefect_api
from assetflow.settings import get_settings


async def evaluate(
    options: Options | None = None,
    *,
    place: str | Path | None = None,
    stop: asyncio.Event | None = None,
    on_ready: Callable[[Evaluator], None] | None = None,
) -> None:
    """Run an evaluator until it is told to stop.

    Parameters:
        place: the ledger, a file or an address; none for what the settings say.
        stop: ends it; none for never.
        on_ready: called when the deployments are known and what was missed is recorded.

    Raises:
        EvaluatorRunning: another evaluator works on this ledger, or took over.
        LedgerForeign: this Prefect belongs to another ledger.
        LedgerError: the ledger cannot be opened.
        InvalidSettings: a module of listeners cannot be imported.
        PrefectUnreachable: no Prefect server is configured; one that does not answer is waited for.
    """
    working = asyncio.create_task(_work(options, place, on_ready))
    stopping = asyncio.create_task((stop or asyncio.Event()).wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def _work(
    options: Options | None, place: str | Path | None, on_ready: Callable[[Evaluator], None] | None
) -> None:
    async with open_evaluator(options, place=place) as evaluator:
        await evaluator.run(partial(on_ready, evaluator) if on_ready else lambda: None)


@asynccontextmanager
async def open_evaluator(
    options: Options | None = None, *, place: str | Path | None = None
) -> AsyncGenerator[Evaluator]:
    """An evaluator that holds the lease of its ledger, for a Prefect that belongs to it.

    Raises:
        as `evaluate`
    """
    options = options or Options()
    _refuse_delivery_by_prefect()
    listeners = load_listeners(get_settings().listeners)
    async with LedgerThread(place) as ledger, prefect_api() as api:
        await _bind(api, ledger, options)
        rebuild = Rebuild(api, ledger)
        floor = await _floor(ledger, options.since, rebuild)
        registry = Registry(api, LedgerConsumers(ledger.ledger, in_thread=ledger.call))
        timers = LedgerTimers(ledger.ledger, ledger.call)
        with Listening(ledger.ledger, listeners) as listening:
            yield Evaluator(ledger, ledger.ledger.id, registry, timers, listening, rebuild, api, floor, options)


@contextmanager
def ready_marker(home: Path, evaluator: Evaluator) -> Generator[Path]:
    """The file `evaluator.json`, which is there while the evaluator is ready, for those who wait for it."""
    marker = home / "evaluator.json"
    home.mkdir(parents=True, exist_ok=True)
    about = {"pid": os.getpid(), "ledger": str(evaluator.ledger_id), "prefect": evaluator.api_url}
    marker.write_text(json.dumps(about | {"since": utc_now().isoformat()}))
    try:
        yield marker
    finally:
        marker.unlink(missing_ok=True)


async def _bind(api: PrefectApi, ledger: LedgerThread, options: Options) -> None:
    """Make sure that ledger and Prefect belong together, as soon as Prefect answers."""
    bind = partial(binding.bind, api, ledger.ledger.id, take_over=options.take_over)
    health = Health()
    await keep_going("Prefect", bind, health)
    health.up("Prefect")
    await ledger.call(ledger.ledger.writer.set_prefect_api_url, api.url)


async def _floor(ledger: LedgerThread, since: datetime | None, rebuild: Rebuild) -> datetime:
    """Where this ledger's time begins: at its creation, or where it was told to replay from."""
    floor = await ledger.cursor("floor") or ledger.ledger.created
    if since is None:
        return floor
    logger.info("replaying updates since %s", since.isoformat())
    await rebuild.plan(since)
    for name in ("artifacts", "events"):
        await ledger.set_cursor(name, since)
    await ledger.set_cursor("floor", min(floor, since))
    return min(floor, since)


def _refuse_delivery_by_prefect() -> None:
    if get_settings().delivery == "prefect":
        raise InvalidSettings(
            "ASSETFLOW_DELIVERY=prefect is the mode without an evaluator: Prefect's automations start the runs",
            where="environment",
            fix="Unset it to let the evaluator decide, or run `assetflow sync` after each deploy instead",
        )
