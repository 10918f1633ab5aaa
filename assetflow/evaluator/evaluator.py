"""The evaluator: its loops, started in the right order and kept going until it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from assetflow.core.consumers import Consumer
from assetflow.core.timetables import Tick
from assetflow.evaluator import binding
from assetflow.evaluator.announce import Announcer
from assetflow.evaluator.catch_up import UPDATES, CatchUp, Sweeps
from assetflow.evaluator.health import ENDS_ALL, Health, keep_going
from assetflow.evaluator.intake import Intake
from assetflow.evaluator.launch import Launcher
from assetflow.evaluator.listening import Listening
from assetflow.evaluator.notes import NoteWriter
from assetflow.evaluator.ports import ConsumerRegistry, EvaluatorLedger, Launch
from assetflow.evaluator.rebuild import Rebuild
from assetflow.evaluator.runs import RunWatch
from assetflow.evaluator.timers import TimerLedger, Timers
from assetflow.listeners import RunCreated
from assetflow.prefect_io.artifact_log import ArtifactLog
from assetflow.prefect_io.event_log import EventLog
from assetflow.prefect_io.flow_runs import FlowRuns
from assetflow.prefect_io.rest import PrefectApi, patiently
from assetflow.prefect_io.run_notes import RunNotes
from assetflow.prefect_io.time_runs import TimeRuns
from assetflow.prefect_io.websocket import subscribe

SETTLE_EVERY = 0.02


@dataclass(frozen=True)
class Options:
    """How an evaluator works.

    Attributes:
        since: replay Prefect's logs from here on; a new ledger starts at its creation, an old one where it stopped.
        take_over: become the evaluator of a Prefect that belongs to another ledger.
        stand_by: on Postgres, wait while another evaluator works, and take over from it.
        patience: seconds to wait for a Prefect that does not answer at the start; none for ever.
        sweeps: how often and how far back Prefect's logs are read.
        look_after_lease: seconds between two signs of life.
        look_after_binding: seconds between two looks at whether another ledger took over.
        ui_url: where assetflow's pages are, for links to them; empty for nowhere.
        health: what works and what does not, from before there is an evaluator on.
    """

    since: datetime | None = None
    take_over: bool = False
    stand_by: bool = True
    patience: float | None = None
    sweeps: Sweeps = field(default_factory=Sweeps)
    look_after_lease: float = 1.0
    look_after_binding: float = 10.0
    ui_url: str = ""
    health: Health = field(default_factory=Health)


class Evaluator:
    """One evaluator on one ledger and one Prefect; `start` it, then `run` it.

    Parameters:
        ledger_id: the ledger's id, which Prefect is bound to.
        timers: the part of the ledger that knows how far the times of consumers have come.
        listening: calls the listeners.
        rebuild: takes over what an earlier ledger decided, if this one is being rebuilt.
        floor: what is older was before the ledger's time.
    """

    def __init__(
        self,
        ledger: EvaluatorLedger,
        ledger_id: UUID,
        registry: ConsumerRegistry,
        timers: TimerLedger,
        listening: Listening,
        rebuild: Rebuild,
        api: PrefectApi,
        floor: datetime,
        options: Options | None = None,
    ) -> None:
        self.ledger_id = ledger_id
        self.api_url = api.url
        self._ledger = ledger
        self._api = api
        self._rebuild = rebuild
        self._options = options or Options()
        self.health = self._options.health
        artifacts, events, runs = ArtifactLog(api), EventLog(api), FlowRuns(api)
        self._announcer = Announcer(events, utc_now)
        self.registry = registry
        self._listening = listening
        self.launcher = Launcher(ledger, runs, artifacts, self.health, self._launched)
        self.notes = NoteWriter(ledger, RunNotes(api), self.health, self.launcher.at_rest, self._options.ui_url)
        self.intake = Intake(ledger, self.health, utc_now, self._recorded, self._want_sweep)
        self.catch_up = CatchUp(
            artifacts, events, self.intake, ledger, self.health, utc_now, floor, self._options.sweeps
        )
        self.timers = Timers(timers, TimeRuns(api, runs), registry.inherited, self.health, utc_now, self._time_run_made)
        self.run_watch = RunWatch(ledger, runs, self.health, self.launcher.wake)

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Evaluate until cancelled.

        Parameters:
            on_ready: called when consumers are known and what was missed is recorded.

        Raises:
            LeaseLost, LedgerForeign: another evaluator has taken over.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                self._keep_all_going(tasks, self._loops())
                await self._start()
                on_ready()
                self._keep_all_going(tasks, self._loops_after_start())
        except* ENDS_ALL as group:
            # One reason is enough for whoever started the evaluator.
            raise group.exceptions[0] from None

    def _keep_all_going(self, tasks: asyncio.TaskGroup, loops: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
        for name, loop in loops.items():
            tasks.create_task(keep_going(name, loop, self.health), name=name)

    async def settled(self) -> None:
        """Return when the deployments are known, all that Prefect's logs hold is recorded, and all runs are there.

        The notes on their pages are there too.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        sweep = partial(self.catch_up.sweep, self._options.sweeps.overlap)
        for step in (self.registry.sync, self.timers.settled, sweep):
            await patiently(step)
        while not await self._is_idle():  # noqa: ASYNC110 (other processes write to the ledger too)
            await asyncio.sleep(SETTLE_EVERY)

    async def worked_off(self) -> None:
        """Return when nothing waits that Prefect still has, however long ago it occurred.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        await patiently(self.catch_up.whole_window)
        await self.settled()

    async def _is_idle(self) -> bool:
        idle = self.intake.is_idle and self.launcher.is_idle and not await self._ledger.waiting(1)
        return idle and not await self._ledger.without_note(1)

    async def _start(self) -> None:
        """Learn the consumers, then what was missed: an event finds those consumers only that are known."""
        steps: Mapping[str, Callable[[], Awaitable[None]]] = {
            "deployments": self.registry.begin,
            "earlier runs": self._rebuild.begin,
            "Prefect's logs": self.catch_up.start,
            "rebuilding": self._rebuild.finish,
        }
        for name, step in steps.items():
            await keep_going(name, step, self.health)
            self.health.up(name)

    def _loops(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        return {
            "lease": self._keep_lease,
            "ledger": self.intake.run,
            "launching": self.launcher.run,
            "announcing": self._announcer.run,
        }

    def _loops_after_start(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        return {
            "binding": self._keep_binding,
            "deployments": self.registry.run,
            "times": self.timers.run,
            "listening for updates": self._listen_for_updates,
            "listening for runs": self._listen_for_runs,
            "reading Prefect's logs": self.catch_up.run,
            "reading the whole window": self.catch_up.whole_window,
            "asking for runs": self.run_watch.run,
            "notes of runs": self.notes.run,
        }

    async def _listen_for_updates(self) -> None:
        async with subscribe(self._api.url, names=UPDATES) as events:
            self.health.up("listening for updates")
            self.catch_up.want()
            self.launcher.retry_now()
            async for event in events:
                self.intake.hear(event)

    async def _listen_for_runs(self) -> None:
        async with subscribe(self._api.url, prefixes=["prefect.flow-run."]) as events:
            self.health.up("listening for runs")
            async for event in events:
                await self.run_watch.hear(event)

    async def _keep_lease(self) -> None:
        while True:
            await self._ledger.renew_lease()
            self.health.up("lease")
            await asyncio.sleep(self._options.look_after_lease)

    async def _keep_binding(self) -> None:
        while True:
            await binding.check(self._api, self.ledger_id)
            self.health.up("binding")
            await asyncio.sleep(self._options.look_after_binding)

    def _recorded(self) -> None:
        self.launcher.wake()
        self._listening.wake()

    def _launched(self, launch: Launch, run: UUID) -> None:
        self._announcer.tell(launch, run)
        self.notes.wake()
        decision = launch.decision
        key = decision.target_key
        self._listening.run_created(RunCreated(run, launch.consumer, decision.deployment_id, key, decision.id))

    def _time_run_made(self, consumer: Consumer, tick: Tick, run: UUID) -> None:
        created = RunCreated(run, consumer.name, consumer.deployment_id, tick.partition_key, tick=tick.time)
        self._listening.run_created(created)

    def _want_sweep(self) -> None:
        self.catch_up.want()


def utc_now() -> datetime:
    return datetime.now(UTC)
