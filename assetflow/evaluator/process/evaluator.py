"""The evaluator: it starts its loops in order, and keeps them going until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import UUID

from assetflow.core.rules.ended_runs import RunChange
from assetflow.core.time.timetables import Tick
from assetflow.core.values.consumers import Consumer
from assetflow.errors import InvalidCall, PrefectUnreachable
from assetflow.evaluator.consumers.announcements import Teller
from assetflow.evaluator.consumers.clock import Clock
from assetflow.evaluator.consumers.registry import Registry
from assetflow.evaluator.consumers.timers import Timers
from assetflow.evaluator.health import Health, keep_going, logger, one_reason
from assetflow.evaluator.incoming.catch_up import OLDER, UPDATES, CatchUp, Sweeps
from assetflow.evaluator.incoming.inbox import Inbox
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.process.binding import CURSOR as PRUNED
from assetflow.evaluator.process.binding import Binding
from assetflow.evaluator.process.listeners import ListenerThread
from assetflow.evaluator.process.status import HeldUpWriter, Rebuild
from assetflow.evaluator.runs.launch import READING_ENDS, FinalStates, Launch, Launcher
from assetflow.evaluator.runs.watch import Announcer, NoteWriter, RunWatch
from assetflow.listeners import RunCreated, load_listeners
from assetflow.prefect_io.flow_runs import FlowRuns, TimeRuns
from assetflow.prefect_io.logs import ArtifactLog, EventLog
from assetflow.prefect_io.open_runs import OpenRuns, run_change
from assetflow.prefect_io.own_events import (
    check_failed,
    deadline_missed,
    failed_with_assets,
    freshness_changed,
    materialized,
    run_failed,
)
from assetflow.prefect_io.rest import PrefectApi, patiently, prefect_api
from assetflow.prefect_io.run_notes import RunNotes
from assetflow.prefect_io.websocket import subscribe
from assetflow.settings import get_settings

SETTLE_EVERY = 0.02
# Updates that come in so many seconds are told together, after the runs that they start.
REST, UPDATES_TOLD = 1.0, 200


@dataclass(frozen=True)
class Options:
    """The options of an evaluator.

    Attributes:
        since: the time from which Prefect's logs are read again; `None` to go on where the last evaluator stopped, or
            at the creation of a new ledger.
        take_over: True to use a Prefect that belongs to another ledger, whose evaluator then stops.
        stand_by: True to wait, on Postgres, while another evaluator is running, and to take over from it.
        patience: the seconds to wait at the start for a Prefect that does not answer; `None` to wait for ever.
        sweeps: how often and how far back Prefect's logs are read.
        lease_every: the seconds between two renewals of the lease.
        binding_every: the seconds between two checks whether another ledger has taken Prefect over.
        ui_url: the address of assetflow's pages, for links to them; empty if there are none.
        health: what works and what does not, already before the evaluator is open.
        ahead: returns how far the ledger's clock is ahead of the real one, and of Prefect's: tests let time pass.
    """

    since: datetime | None = None
    take_over: bool = False
    stand_by: bool = True
    patience: float | None = None
    sweeps: Sweeps = field(default_factory=Sweeps)
    lease_every: float = 1.0
    binding_every: float = 10.0
    ui_url: str = ""
    health: Health = field(default_factory=Health)
    ahead: Callable[[], timedelta] = timedelta


class Evaluator:
    """An evaluator of one ledger and one Prefect; `process/composition.py` opens it.

    Parameters:
        binding: the bond between the ledger and Prefect.
        listeners: calls the users' listeners.
        rebuild: adopts the decisions of an earlier ledger, if this one is being rebuilt.
        floor: the beginning of the ledger; older updates are not recorded.
    """

    def __init__(
        self,
        ledger: LedgerThread,
        api: PrefectApi,
        binding: Binding,
        listeners: ListenerThread,
        rebuild: Rebuild,
        floor: datetime,
        options: Options,
    ) -> None:
        self.ledger_id = ledger.ledger.id
        self.api_url = api.url
        self.health = health = options.health
        self._ledger = ledger
        self._api = api
        self._binding = binding
        self._listeners = listeners
        self._rebuild = rebuild
        self._options = options
        runs, events, artifacts = FlowRuns(api), EventLog(api), ArtifactLog(api)
        self.registry = Registry(api, ledger)
        self._announcer = Announcer(events)
        self.launcher = Launcher(ledger, runs, artifacts, health, self._launched)
        self.notes = NoteWriter(ledger, RunNotes(api, options.ui_url), health, self.launcher.at_rest)
        starts_of = OpenRuns(api).tasks_began
        writer, telling = ledger.writer, (events, health, utc_now)
        self.failed_checks = Teller(
            "telling of failed checks", ledger, ledger.writer.failed_checks, check_failed, *telling
        )
        self.inbox = Inbox(
            ledger,
            health,
            utc_now,
            self._recorded,
            self._want_sweep,
            starts_of,
            on_failed_check=self.failed_checks.wake,
        )
        self.catch_up = CatchUp(artifacts, events, self.inbox, ledger, health, utc_now, floor, options.sweeps)
        native = get_settings().native_events
        as_failures = failed_with_assets if native else run_failed
        self.freshness = Teller("telling of freshness", ledger, writer.freshness, freshness_changed, *telling)
        self.failures = Teller("telling of failed runs", ledger, writer.ended_runs, as_failures, *telling)
        self.deadlines = Teller("telling of missed deadlines", ledger, writer.deadlines, deadline_missed, *telling)
        self.assets = Teller(
            "telling of assets", ledger, writer.materialized, materialized, *telling, UPDATES_TOLD, REST
        )
        own = (self.freshness, self.failures, self.deadlines, self.failed_checks)
        self._tellers = (*own, self.assets) if native else own
        self.final_states = FinalStates(ledger, OpenRuns(api), health, floor, self.failures.wake)
        self.clock = Clock(
            ledger,
            self._read_until,
            self._want_sweep,
            health,
            lambda: utc_now() + options.ahead(),
            self._recorded,
            self.freshness.wake,
            self.deadlines.wake,
            timedelta(seconds=get_settings().settle),
        )
        inherited, created = self.registry.inherited, self._time_run_created
        self.timers = Timers(ledger, TimeRuns(api, runs), inherited, health, utc_now, created)
        ended, read_on = self.launcher.wake, self.catch_up.read_on
        self.run_watch = RunWatch(ledger, runs, OpenRuns(api), health, ended, read_on, utc_now)

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Evaluate until cancelled.

        Parameters:
            on_ready: called when the consumers are known and missed updates are recorded.

        Raises:
            LeaseLost, LedgerForeign: another evaluator has taken over.
        """
        with one_reason():
            async with asyncio.TaskGroup() as tasks:
                self._keep_all_going(tasks, self._loops())
                await self._start()
                on_ready()
                self._keep_all_going(tasks, self._loops_after_start())

    def _keep_all_going(self, tasks: asyncio.TaskGroup, loops: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
        for name, loop in loops.items():
            tasks.create_task(keep_going(name, loop, self.health), name=name)

    async def settled(self) -> None:
        """Return when deployments are known, updates in Prefect's logs are recorded, and runs and their notes exist.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        sweep = partial(self.catch_up.sweep, self._options.sweeps.overlap)
        for step in (self.registry.sync, self.timers.settled, sweep, self.clock.look):
            await patiently(step)
        while not await self._is_idle():  # noqa: ASYNC110 (other processes write to the ledger too)
            await asyncio.sleep(SETTLE_EVERY)

    async def worked_off(self) -> None:
        """Return when everything that Prefect still has is recorded, however old it is, and `settled` returns.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        await patiently(self.catch_up.full_sweep)
        await self.settled()

    async def _is_idle(self) -> bool:
        decisions = self._ledger.reader.decisions
        idle = self.inbox.is_idle and self.launcher.is_idle
        idle = idle and not await self._ledger.call(decisions.waiting, limit=1)
        return idle and not await self._ledger.call(decisions.without_note, limit=1)

    async def _start(self) -> None:
        """Read the deployments, then the missed updates: an update only reaches consumers that are known.

        Adopt earlier decisions first, because a changed schedule may lead to decisions. Ask for the runs that go on
        before the updates, because an Eager flow waits for them.
        """
        steps: Mapping[str, Callable[[], Awaitable[None]]] = {
            "earlier runs": self._rebuild.begin,
            "deployments": self.registry.begin,
            "runs that go on": self.run_watch.look,
            "Prefect's logs": self.catch_up.start,
            "rebuilding": self._rebuild.finish,
        }
        for name, step in steps.items():
            await keep_going(name, step, self.health)
            self.health.up(name)

    def _loops(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        return {
            "lease": partial(self._repeat, "lease", self._ledger.renew_lease, self._options.lease_every),
            "ledger": self.inbox.run,
            "launching": self.launcher.run,
            "announcing": self._announcer.run,
            "listening to the ledger": self._listen_to_ledger,
            "reporting what is held up": HeldUpWriter(self._ledger, self.health).run,
        }

    def _loops_after_start(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        return {
            "binding": partial(self._repeat, "binding", self._binding.check, self._options.binding_every),
            "deployments": partial(self.registry.run, partial(self.health.up, "deployments")),
            "times": self.timers.run,
            "clock": self.clock.run,
            **{each.name: each.run for each in self._tellers},
            READING_ENDS: self.final_states.run,
            "listening for updates": self._listen_for_updates,
            "listening for runs": self._listen_for_runs,
            "reading Prefect's logs": self.catch_up.run,
            OLDER: self.catch_up.run_older,
            "asking for runs": self.run_watch.run,
            "notes of runs": self.notes.run,
        }

    async def _listen_to_ledger(self) -> None:
        async with self._ledger.commits() as commits:
            self.health.up("listening to the ledger")
            async for _ in commits:
                self.launcher.wake()
                self.clock.wake()
                self._listeners.wake()

    async def _listen_for_updates(self) -> None:
        async with subscribe(self._api.connect_url, names=UPDATES) as events:
            self.health.up("listening for updates")
            self.catch_up.wake()
            self.launcher.retry_now()
            async for event in events:
                self.inbox.hear(event)

    async def _listen_for_runs(self) -> None:
        async with subscribe(self._api.connect_url, prefixes=["prefect.flow-run."]) as events:
            self.health.up("listening for runs")
            await self.run_watch.listen(self._heard(change) async for event in events if (change := run_change(event)))

    def _heard(self, change: RunChange) -> RunChange:
        if change.end is not None:
            self.final_states.wake(change.run if change.anew else None)
        return change

    async def _repeat(self, name: str, step: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            await step()
            self.health.up(name)
            await asyncio.sleep(seconds)

    def _recorded(self) -> None:
        self.launcher.wake()
        self._listeners.wake()
        self.assets.wake()

    def _launched(self, launch: Launch, run: UUID) -> None:
        self._announcer.announce(launch, run)
        self.notes.wake()
        decision = launch.decision
        key = decision.target_key
        self._listeners.run_created(RunCreated(run, launch.consumer, decision.deployment_id, key, decision.id))

    def _time_run_created(self, consumer: Consumer, tick: Tick, run: UUID) -> None:
        created = RunCreated(run, consumer.name, consumer.deployment_id, tick.partition_key, tick=tick.time)
        self._listeners.run_created(created)

    def _read_until(self) -> datetime | None:
        read = self.catch_up.read_until
        return None if read is None else read + self._options.ahead()

    def _want_sweep(self) -> None:
        self.catch_up.wake()


def utc_now() -> datetime:
    return datetime.now(UTC)


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
