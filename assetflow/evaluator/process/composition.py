"""Put an evaluator together: the ledger under its lease, Prefect's API, and the parts that work on both.

Only here do the evaluator's loops meet the implementations of their ports.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from uuid import UUID

from assetflow.core.rules.runs import RunChange
from assetflow.errors import InvalidCall, PrefectUnreachable
from assetflow.evaluator.consumers.registry import SECONDS_BETWEEN_LOOKS, Registry
from assetflow.evaluator.health import keep_going, logger
from assetflow.evaluator.incoming.catch_up import UPDATES
from assetflow.evaluator.ports import ConsumerLedger, Json, Launch, Prefect, PrefectDeployments
from assetflow.evaluator.process.binding import Binding
from assetflow.evaluator.process.evaluator import Evaluator, Options, utc_now
from assetflow.evaluator.process.ledger_thread import LedgerThread
from assetflow.evaluator.process.listeners import ListenerThread
from assetflow.evaluator.process.prune import CURSOR as PRUNED
from assetflow.evaluator.process.rebuild import Rebuild
from assetflow.listeners import load_listeners
from assetflow.prefect_io.automations import Automations
from assetflow.prefect_io.deployments import Deployments
from assetflow.prefect_io.flow_runs import FlowRuns, TimeRuns
from assetflow.prefect_io.logs import ArtifactLog, EventLog
from assetflow.prefect_io.open_runs import OpenRuns, past_decisions, run_change
from assetflow.prefect_io.own_events import deadline_missed, decision_made, freshness_changed
from assetflow.prefect_io.rest import PrefectApi, patiently, prefect_api
from assetflow.prefect_io.run_notes import RunNotes
from assetflow.prefect_io.websocket import subscribe
from assetflow.settings import get_settings

_CHANGES = ("prefect.deployment.", "prefect.automation.")


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
        prefect = _prefect(api, binding, options)
        rebuild = Rebuild(ledger, prefect.past_decisions)
        floor = await _floor(ledger, options.since, rebuild)
        with ListenerThread(ledger.ledger, listeners) as listener_thread:
            yield Evaluator(
                ledger.ledger.id, ledger, prefect, open_registry(api, ledger), listener_thread, rebuild, floor, options
            )


def _prefect(api: PrefectApi, binding: Binding, options: Options) -> Prefect:
    runs = FlowRuns(api)
    return Prefect(
        url=api.url,
        events=EventLog(api),
        artifacts=ArtifactLog(api),
        runs=runs,
        time_runs=TimeRuns(api, runs),
        notes=RunNotes(api, options.ui_url),
        new_updates=partial(subscribe, api.connect_url, names=UPDATES),
        open_runs=OpenRuns(api),
        run_changes=partial(_run_changes, api.connect_url),
        decision_event=_decision_event,
        deadline_event=deadline_missed,
        freshness_event=freshness_changed,
        past_decisions=partial(past_decisions, api),
        check_binding=binding.check,
        patiently=patiently,
    )


def open_registry(
    api: PrefectApi,
    ledger: ConsumerLedger,
    *,
    seconds: float = SECONDS_BETWEEN_LOOKS,
) -> Registry:
    """Return the registry of the deployments of one Prefect.

    Parameters:
        seconds: the most seconds between two looks at Prefect.
    """
    prefect = PrefectDeployments(
        Deployments(api), Automations(api), lambda: subscribe(api.connect_url, prefixes=_CHANGES)
    )
    return Registry(prefect, ledger, seconds=seconds)


@asynccontextmanager
async def _run_changes(url: str) -> AsyncGenerator[AsyncIterator[RunChange]]:
    async with subscribe(url, prefixes=["prefect.flow-run."]) as events:
        yield (change async for event in events if (change := run_change(event)) is not None)


def _decision_event(launch: Launch, flow_run: UUID) -> Json:
    now = utc_now().isoformat()
    return decision_made(launch.decision, launch.consumer, launch.automation, flow_run, now)


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
    await ledger.set_prefect_url(api.url)


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
