"""Keep three things in step: deployments, the consumers in the ledger, and the automations that show their schedules.

Deployments define the schedules, and automations what is paused; the ledger and the automations follow. Each deployment
is reconciled separately: a step that fails is made again at the next look, and a deployment that cannot be used does
not hold up the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import UUID

from assetflow.core.grouping import grouped
from assetflow.core.wire import FlowDeclaration
from assetflow.core.wire.deployments import NOTES, Deployed, RefusedDeployment, ShownAutomation
from assetflow.errors import AssetflowError, InvalidSchedule, LedgerError, PrefectUnreachable, StatementRefused
from assetflow.evaluator.consumers.announcements import RefusalBoard, Refusals
from assetflow.evaluator.consumers.reconcile import Reconciler, SyncReport, WatcherNames, find_cycles, seldom_run
from assetflow.evaluator.health import heard, logger
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger.records import ConsumerRecord
from assetflow.prefect_io.automations import Automations
from assetflow.prefect_io.deployments import Deployments
from assetflow.prefect_io.open_runs import OpenRuns
from assetflow.prefect_io.rest import PrefectApi
from assetflow.prefect_io.websocket import subscribe


class Warnings:
    """Logs each warning once, as long as its reason stays.

    Parameters:
        report: receives the warnings that hold now.
    """

    def __init__(self, ledger: LedgerThread, report: SyncReport) -> None:
        self._ledger = ledger
        self._report = report
        self._notes: Mapping[str, str] | None = None

    async def give(self, deployed: Iterable[Deployed]) -> None:
        """Warn of cycles, of flows that hardly ever run, of policies that cannot be held, and of what was left behind.

        Raises:
            LedgerError: the next call gives the warnings.
        """
        deployed = list(deployed)
        declarations = {each.name: each.declaration for each in deployed if each.declaration}
        cycles = find_cycles(declarations)
        notes = left_behind(deployed)
        warnings = [*seldom_run(declarations).values(), *await self._infeasible(declarations), *notes.values()]
        if notes != self._notes:
            await self._ledger.call(self._ledger.writer.set_cursor, NOTES, notes)
            self._notes = notes
        for each in (*cycles, *warnings):
            if each not in self._report.cycles and each not in self._report.warnings:
                logger.warning("%s", each)
        self._report.cycles, self._report.warnings = cycles, warnings

    async def _infeasible(self, declarations: Mapping[str, FlowDeclaration]) -> list[str]:
        """Return a sentence for each policy that cannot be held, which is known once a policy was judged."""
        if not any(each.options.data.policies for each in declarations.values()):
            return []
        found = await self._ledger.call(self._ledger.reader.policies.all)
        return [f"{each.uri}: {words}" for each in found if (words := each.describe_feasibility())]


def left_behind(deployed: Iterable[Deployed]) -> dict[str, str]:
    """Return a sentence for each deployment that runs beside its successor, by its name: it was hardly meant to stay.

    The two have the same entrypoint, schedule and parameters, and the older one was not in the deploy that made the
    other one.
    """
    made_from_code = (each for each in deployed if each.is_scheduled and each.entrypoint and each.created is not None)
    groups = grouped(((each.entrypoint, each.text, each.parameters), each) for each in made_from_code)
    found: dict[str, str] = {}
    for group in groups.values():
        made, newest = max((each.created or each.updated, each.name) for each in group)
        found |= {each.name: _words(each.name, newest) for each in group if each.name != newest and each.updated < made}
    return found


def _words(old: str, new: str) -> str:
    return (
        f"{old} runs beside {new}, a later deployment of the same flow with the same schedule and parameters. If it "
        f"was renamed, `prefect deployment delete '{old}'` ends the old one and its queue"
    )


SECONDS_BETWEEN_LOOKS = 5.0
# The cursor that holds the timestamp of the newest automation that the consumers follow.
AUTOMATIONS = "automations"
_CHANGES = ("prefect.deployment.", "prefect.automation.")
UNREACHABLE_IN_A_ROW = 3
# The rules by which a flow is refused because of others, or of what is set in Prefect. Contract 4.7, 8.1, 8.10, 8.11.
BESIDE_OTHERS = frozenset({"4.7", "8.1", "8.10", "8.11"})
# Two changes may become visible in another order than that of their timestamps.
OVERLAP = timedelta(minutes=1)


class Registry:
    """The consumers of one Prefect server.

    Attributes:
        report: the steps since the start, and the problems that exist now.
    """

    def __init__(self, api: PrefectApi, ledger: LedgerThread) -> None:
        self._url = api.connect_url
        self._ledger = ledger
        self._deployments = Deployments(api)
        self._automations = Automations(api)
        self._deployed: dict[UUID, Deployed] = {}
        self._shown: dict[UUID, ShownAutomation] = {}
        # The deployments to reconcile, in the order in which their changes were seen.
        self._waiting: dict[UUID, None] = {}
        # The deployments that the ledger refuses beside others: they may be accepted when others change. Contract 8.1.
        self._refused: set[UUID] = set()
        # The deployments without a schedule as the ledger has them: their names and their declarations.
        self._without_schedule: dict[UUID, tuple[str, str]] = {}
        self._knows_ledger = False
        self._seen: datetime | None = None
        self._declarations_changed = False
        self._nudged = asyncio.Event()
        self._looking = asyncio.Lock()
        self.report = SyncReport()
        self._watcher_names = WatcherNames(self._deployed)
        self._warnings = Warnings(ledger, self.report)
        self._refusals = Refusals(ledger)
        self._refusal_board = RefusalBoard(self._automations, self._shown)
        self._are_refusals_shown = True
        self._reconciler = Reconciler(ledger, self._automations, OpenRuns(api), self._shown, self.report)

    def inherited(self, deployment_id: UUID) -> str:
        """Return a fingerprint of the values that runs copy from a deployment; empty if they are not known yet."""
        deployed = self.report.scheduled.get(deployment_id)
        return "" if deployed is None else deployed.inherited

    async def run(self, looked: Callable[[], None] = lambda: None) -> None:
        """Sync whenever Prefect sends a change, and every few seconds, until cancelled.

        Parameters:
            looked: called after each look.

        Raises:
            PrefectUnreachable, LedgerError: call it again, nothing is lost.
        """
        listening = asyncio.create_task(self._listen())
        try:
            while True:
                self._nudged.clear()
                await self.sync()
                looked()
                await heard(self._nudged, SECONDS_BETWEEN_LOOKS)
        finally:
            listening.cancel()

    async def begin(self) -> None:
        """Make the part of the first look that runs depend on: what changed since the last look for this ledger.

        Reading ten thousand automations takes Prefect longer than all the rest. Those that did not change are as the
        ledger has them; `run` reads all of them first. For a new ledger, all are read now.

        Raises:
            PrefectUnreachable, LedgerError: the next call does the rest.
        """
        async with self._looking:
            seen = await self._ledger.cursor(AUTOMATIONS)
            if seen is None:
                await self._sync()
                return
            await self._look_at_ledger()
            await self._look_at_deployments()
            shown = _by_deployment(await self._automations.changed_since(seen - OVERLAP))
            known = await self._known()
            settled = {each for each in self._waiting if each not in shown and self._is_settled(each, known.get(each))}
            self.report.scheduled.update(
                {each: self._deployed[each] for each in settled if self._deployed[each].is_scheduled}
            )
            await self._reconcile_all([each for each in self._waiting if each not in settled], known, shown)

    async def sync(self) -> None:
        """Look at Prefect once, and reconcile what changed since the last look.

        Raises:
            PrefectUnreachable, LedgerError: the next call does the rest.
        """
        async with self._looking:
            await self._sync()

    async def _sync(self) -> None:
        await self._look()
        if self._waiting:
            self._are_refusals_shown = False
            await self._reconcile_waiting()
        await self._refusals.keep(self.report.problems, self._deployed)
        if not self._are_refusals_shown:
            await self._show_refusals()
            self._are_refusals_shown = True

    async def _show_refusals(self) -> None:
        """Show what is refused beside others, once all others are reconciled. Contract 8.1."""
        if not self._refused:
            return
        known = await self._known()
        shown = _by_deployment(self._shown.values())
        for number in sorted(self._refused):
            deployed, error = self._deployed[number], self.report.problems.get(number)
            if error is not None and error.rule in BESIDE_OTHERS:
                refused = RefusedDeployment.of(number, deployed.name, error, deployed.text)
                await self._refusal_board.show(refused, known.get(number), shown.get(number, ()))

    async def _reconcile_waiting(self) -> None:
        shown = _by_deployment(self._shown.values())
        await self._reconcile_all(list(self._waiting), await self._known(), shown)
        if self._declarations_changed:
            await self._try_refused(shown)
        if not self._waiting:
            await self._save_seen()
        if self._declarations_changed:
            await self._warnings.give(self._deployed.values())
            self._declarations_changed = False

    async def _try_refused(self, shown: Mapping[UUID, Sequence[ShownAutomation]]) -> None:
        """Try again what was refused beside others, by name, as long as one of them is accepted. Contract 8.1."""
        before: set[UUID] = set()
        while self._refused and self._refused != before:
            before = set(self._refused)
            again = sorted(before, key=lambda each: self._deployed[each].name)
            self._waiting.update(dict.fromkeys(again))
            await self._reconcile_all(again, await self._known(), shown)

    async def _known(self) -> Mapping[UUID, ConsumerRecord]:
        records = await self._ledger.call(self._ledger.reader.consumers.all)
        return {each.consumer.deployment_id: each for each in records}

    async def _reconcile_all(
        self,
        deployments: Iterable[UUID],
        known: Mapping[UUID, ConsumerRecord],
        shown: Mapping[UUID, Sequence[ShownAutomation]],
    ) -> None:
        unreachable = 0
        self._reconciler.begin_look()
        for deployment_id in deployments:
            try:
                await self._reconcile(deployment_id, known.get(deployment_id), shown.get(deployment_id, []))
            except PrefectUnreachable as error:
                # If only this deployment is affected, it must not hold up the others.
                self._note_problem(deployment_id, error)
                unreachable += 1
                if unreachable == UNREACHABLE_IN_A_ROW:
                    raise
            except LedgerError as error:
                if not isinstance(error, StatementRefused):
                    raise
                self._note_problem(deployment_id, error)
            except Exception as error:
                # An unexpected error is a problem of this deployment too. The next look tries again.
                self._note_problem(deployment_id, InvalidSchedule(f"deployment {deployment_id} fails: {error!r}"))
            else:
                unreachable = 0
                if deployment_id not in self._reconciler.postponed:
                    del self._waiting[deployment_id]

    def _is_settled(self, deployment_id: UUID, known: ConsumerRecord | None) -> bool:
        """Return True if the ledger has the deployment as it is, unless its automation has changed."""
        deployed = self._deployed.get(deployment_id)
        if deployed is None or deployed.problem is not None:
            return False
        if known is None:
            stands_in_graph = self._without_schedule.get(deployment_id) == (deployed.name, deployed.text)
            return not deployed.options.takes_part and (stands_in_graph or not deployed.options.data.tokens)
        unchanged = known.declaration == deployed.text and known.consumer.held == deployed.held
        return unchanged and deployed.options.takes_part and (known.automation_id is not None) == deployed.is_scheduled

    async def _save_seen(self) -> None:
        """Store the timestamp of the newest automation that the ledger follows."""
        newest = max((each.updated for each in self._shown.values() if each.updated), default=None)
        if newest is not None and newest != self._seen:
            await self._ledger.set_cursor(AUTOMATIONS, newest)
            self._seen = newest

    async def _listen(self) -> None:
        """Nudge when Prefect sends a change. While it cannot, the look every few seconds finds the changes."""
        while True:
            with suppress(PrefectUnreachable):
                async with subscribe(self._url, prefixes=_CHANGES) as events:
                    async for _ in events:
                        self._nudged.set()
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)

    async def _look(self) -> None:
        """Note what changed in Prefect. A deployment stays noted until it is reconciled."""
        await self._look_at_ledger()
        await self._look_at_deployments()
        await self._look_at_automations()

    async def _look_at_ledger(self) -> None:
        if not self._knows_ledger:
            # Any of them may have been deleted while no evaluator ran.
            self._without_schedule.update(await self._ledger.call(self._ledger.reader.consumers.unlisted))
            self._waiting.update(dict.fromkeys([*await self._known(), *self._without_schedule]))
            self._knows_ledger = True

    async def _look_at_deployments(self) -> None:
        deployments = await self._deployments.changes()
        self._declarations_changed |= bool(deployments)
        for deployed in deployments.changed:
            self._deployed[deployed.id] = deployed
            self._waiting[deployed.id] = None
        for deployment_id in deployments.gone:
            self._deployed.pop(deployment_id, None)
            self._refused.discard(deployment_id)
            self._waiting[deployment_id] = None
        if deployments:
            # What was in conflict with another deployment may not be any more, once those are reconciled.
            self._waiting.update(dict.fromkeys([*self._watcher_names.conflicts, *self._refused]))

    async def _look_at_automations(self) -> None:
        automations = await self._automations.changes()
        for shown in automations.changed:
            self._note(self._shown.get(shown.id))
            self._shown[shown.id] = shown
            self._note(shown)
        for automation_id in automations.gone:
            self._note(self._shown.pop(automation_id, None))

    def _note(self, shown: ShownAutomation | None) -> None:
        if shown is not None and shown.deployment_id is not None:
            self._waiting[shown.deployment_id] = None

    async def _reconcile(
        self, deployment_id: UUID, known: ConsumerRecord | None, shown: Sequence[ShownAutomation]
    ) -> None:
        """Reconcile one deployment."""
        deployed = self._deployed.get(deployment_id)
        if deployed is None:
            if await self._deployments.is_gone(deployment_id):
                await self._reconciler.remove(deployment_id, known, shown)
                await self._drop_edges(deployment_id)
            return
        try:
            if problem := _problem(deployed, known) or self._watcher_names.check(deployed):
                raise problem
            if deployed.options.takes_part:
                self._without_schedule.pop(deployment_id, None)
                await self._reconciler.reconcile(deployed, known, shown)
            else:
                await self._reconcile_without_schedule(deployed, known, shown)
        except (PrefectUnreachable, LedgerError):
            raise
        except AssetflowError as error:
            self._note_problem(deployment_id, error if deployed.name in error.where else error.at(deployed.where))
            if error.rule in BESIDE_OTHERS:
                self._refused.add(deployment_id)
        else:
            self._refused.discard(deployment_id)
            self.report.problems.pop(deployment_id, None)

    async def _reconcile_without_schedule(
        self, deployed: Deployed, known: ConsumerRecord | None, shown: Sequence[ShownAutomation]
    ) -> None:
        if known is not None or shown:
            await self._reconciler.remove(deployed.id, known, shown)
        told = (deployed.name, deployed.text)
        if deployed.text and self._without_schedule.get(deployed.id) != told:
            await self._set_edges(deployed)
            self._without_schedule[deployed.id] = told
        elif not deployed.text and deployed.id in self._without_schedule:
            await self._drop_edges(deployed.id)

    async def _set_edges(self, deployed: Deployed) -> None:
        """Store the assets that a deployment without a schedule makes and reads, for lineage and the data graph.

        Raises:
            InvalidSchedule: the flow cannot work beside those that are deployed (8.10).
        """
        if deployed.options.data.tokens:
            # In the data graph, neither its switch nor its own pause means anything.
            await self._reconciler.deploy(deployed, paused=False, held=False)
        else:
            told = (deployed.id, deployed.name, deployed.text, self._ledger.now())
            await self._ledger.call(self._ledger.writer.lineage.declare, *told, late=self._ledger.is_late)

    async def _drop_edges(self, deployment_id: UUID) -> None:
        await self._ledger.call(self._ledger.writer.consumers.forget, deployment_id, self._ledger.now())
        self._without_schedule.pop(deployment_id, None)

    def _note_problem(self, deployment_id: UUID, error: AssetflowError) -> None:
        """Keep the reason why a deployment is not in step, and log it once."""
        before = self.report.problems.get(deployment_id)
        self.report.problems[deployment_id] = error
        if str(before) != str(error):
            logger.error("%s", error if error.rule is None else f"{str(error).rstrip('.')}. Contract {error.rule}")


def _by_deployment(shown: Iterable[ShownAutomation]) -> Mapping[UUID, Sequence[ShownAutomation]]:
    return grouped((each.deployment_id, each) for each in shown if each.deployment_id is not None)


def _problem(deployed: Deployed, known: ConsumerRecord | None) -> AssetflowError | None:
    if deployed.problem is not None:
        return deployed.problem
    if known is not None and deployed.bare:
        return InvalidSchedule(
            "Prefect lost its parameter schema, and its asset schedule with it",
            where=deployed.where,
            fix="Deploy it again; the consumer stays as it was until then",
        )
    return None
