"""An evaluator from start to stop: ledger, lease, Prefect, binding, and the marker that says it is ready."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from assetflow.errors import InvalidCall, InvalidSettings, LeaseLost, PrefectUnreachable
from assetflow.evaluator import binding
from assetflow.evaluator.evaluator import Evaluator, Options, utc_now
from assetflow.evaluator.health import keep_going, logger
from assetflow.evaluator.ledger_consumers import LedgerConsumers
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.ledger_timers import LedgerTimers
from assetflow.evaluator.listening import Listening
from assetflow.evaluator.prune import CURSOR as PRUNED
from assetflow.evaluator.rebuild import Rebuild
from assetflow.evaluator.registry import Registry
from assetflow.listeners import load_listeners
from assetflow.prefect_io.rest import PrefectApi, prefect_api
from assetflow.settings import get_settings

AtWork = Callable[[Evaluator], AbstractContextManager[object]]


async def evaluate(
    options: Options | None = None,
    *,
    place: str | Path | None = None,
    stop: asyncio.Event | None = None,
    at_work: AtWork = nullcontext,
) -> None:
    """Run an evaluator until it is told to stop. On Postgres it stands by while another one works.

    Parameters:
        place: the ledger, a file or an address; none for what the settings say.
        stop: ends it; none for never.
        at_work: gives what surrounds the time in which this one evaluates: from the moment in which the deployments
            are known, and what was missed is recorded, until it ends or another one has taken over.

    Raises:
        EvaluatorRunning: another evaluator works on this ledger, or took over, and this one cannot stand by.
        LedgerForeign: this Prefect belongs to another ledger.
        LedgerError: the ledger cannot be opened.
        InvalidCall: it is to replay from a time before which the ledger was pruned.
        InvalidSettings: a module of listeners cannot be imported.
        PrefectUnreachable: no Prefect server is configured, or it does not answer for as long as the options say.
    """
    working = asyncio.create_task(_work(options or Options(), place, at_work))
    stopping = asyncio.create_task((stop or asyncio.Event()).wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def _work(options: Options, place: str | Path | None, at_work: AtWork) -> None:
    while True:
        try:
            async with open_evaluator(options, place=place) as evaluator:
                with ExitStack() as surroundings:
                    await evaluator.run(partial(_enter, surroundings, at_work, evaluator))
        except LeaseLost as error:
            logger.warning("%s", error.message)
        # What it was told to do once it has begun to do.
        options = replace(options, since=None, take_over=False)


def _enter(surroundings: ExitStack, at_work: AtWork, evaluator: Evaluator) -> None:
    surroundings.enter_context(at_work(evaluator))


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
    async with LedgerThread(place, stand_by=options.stand_by) as ledger, prefect_api() as api:
        await _bind(api, ledger, options)
        rebuild = Rebuild(api, ledger)
        floor = await _floor(ledger, options.since, rebuild)
        registry = Registry(api, LedgerConsumers(ledger.ledger, in_thread=ledger.call))
        timers = LedgerTimers(ledger.ledger, ledger.call)
        with Listening(ledger.ledger, listeners) as listening:
            yield Evaluator(ledger, ledger.ledger.id, registry, timers, listening, rebuild, api, floor, options)


@contextmanager
def ready_marker(home: Path, evaluator: Evaluator) -> Generator[Path]:
    """Within the block the evaluator is ready: the log says so, and the file `evaluator.json`, for those who wait."""
    logger.info("ready: updates of assets in %s start flows", evaluator.api_url)
    marker = home / "evaluator.json"
    about = {"pid": os.getpid(), "ledger": str(evaluator.ledger_id), "prefect": evaluator.api_url}
    told = json.dumps(about | {"since": utc_now().isoformat()})
    try:
        home.mkdir(parents=True, exist_ok=True)
        marker.write_text(told)
    except OSError as error:
        # On a full disk there is work to do all the same.
        logger.warning("%s cannot be written, so that others cannot see that this is ready: %s", marker, error)
    try:
        yield marker
    finally:
        # Another process with the same home may have taken over meanwhile.
        if marker.exists() and marker.read_text() == told:
            marker.unlink()


async def _bind(api: PrefectApi, ledger: LedgerThread, options: Options) -> None:
    """Make sure that ledger and Prefect belong together, as soon as Prefect answers."""
    bind = partial(binding.bind, api, ledger.ledger.id, take_over=options.take_over)
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
    await ledger.call(ledger.ledger.writer.set_prefect_api_url, api.url)


async def _floor(ledger: LedgerThread, since: datetime | None, rebuild: Rebuild) -> datetime:
    """Where this ledger's time begins: at its creation, or where it was told to replay from."""
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


def _refuse_delivery_by_prefect() -> None:
    if get_settings().delivery == "prefect":
        raise InvalidSettings(
            "ASSETFLOW_DELIVERY=prefect is the mode without an evaluator: Prefect's automations start the runs",
            where="environment",
            fix="Unset it to let the evaluator decide, or run `assetflow sync` after each deploy instead",
        )
