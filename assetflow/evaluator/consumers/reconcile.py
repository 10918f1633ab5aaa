"""Reconcile one deployment: its consumer in the ledger, and the automation that shows its schedule.

Each step compares what should exist with what exists, so that the next call makes up for a step that failed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Literal
from uuid import UUID

from assetflow.core.freshness.graph import DataGraph, FlowNode
from assetflow.core.rules.ended_runs import RunGoingOn
from assetflow.core.values.conditions import Leaf, Token
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.watchers import AssetWatcher
from assetflow.core.wire.declarations import FlowDeclaration, resolved, uris_of_names
from assetflow.core.wire.deployments import Deployed, ShownAutomation
from assetflow.errors import AssetflowError, LedgerError, NameTaken
from assetflow.evaluator.health import logger
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.ledger.records import ConsumerRecord
from assetflow.prefect_io.automations import AutomationCore, Automations, automation_for
from assetflow.prefect_io.open_runs import OpenRuns

_LAZY = "is Lazy and never runs: no asset that it or a flow below it makes has a FreshnessPolicy"
_EAGER = "is Eager and reads nothing: it runs once, and after new code. Name inlets, or give it a timetable"


def seldom_run(declarations: Mapping[str, FlowDeclaration]) -> dict[str, str]:
    """Return the names of the flows that hardly ever run as they are declared, each with a sentence about it.

    Parameters:
        declarations: the declarations of flows, by the name of the consumer.
    """
    if all(each.options.schedule.keeping is None for each in declarations.values()):
        return {}
    graph = _graph_of(declarations)
    nodes = sorted(graph.all(), key=lambda node: node.consumer.name)
    return {node.consumer.name: f"{node.consumer.name} {why}" for node in nodes if (why := _why(graph, node))}


def _why(graph: DataGraph, node: FlowNode) -> str:
    """Return why a flow hardly ever runs; empty if it may run as often as it should."""
    if node.is_lazy:
        return "" if _is_pulled(graph, node) else _LAZY
    # An OnMissing flow is meant to run once.
    return _EAGER if node.keeping is not None and node.keeping.on and not node.inputs else ""


def _graph_of(declarations: Mapping[str, FlowDeclaration]) -> DataGraph:
    uris = uris_of_names(declarations.values())

    def resolve(token: Token) -> str | None:
        return token.value if token.kind == "uri" else uris.get(token.value)

    consumers = [
        Consumer(number, name, UUID(int=number), declaration.options)
        for number, (name, declaration) in enumerate(sorted(declarations.items()), 1)
    ]
    return DataGraph(consumers, resolve, lambda uri: frozenset({Token("uri", uri)}))


def _is_pulled(graph: DataGraph, lazy: FlowNode) -> bool:
    """Return True if an Eager or Lazy flow below, or the flow itself, makes an asset with a policy."""
    below = (node for number in graph.below([lazy.id]) if (node := graph.find(number)) is not None)
    keeping = (node for node in below if node.keeping is not None and not node.is_partitioned)
    return any(graph.policy(uri) is not None for node in keeping for uri in node.outputs)


MOST = 20

Node = str | Token


@dataclass(frozen=True)
class Cycle:
    """A path from a consumer back to itself: consumers and assets in turn, the first consumer at both ends."""

    path: tuple[Node, ...]

    def __str__(self) -> str:
        nodes = " → ".join(node.value if isinstance(node, Token) else node for node in self.path)
        return f"{self.path[0]!r} is scheduled on what its own runs lead to: {nodes}"


def find_cycles(declarations: Mapping[str, FlowDeclaration]) -> list[Cycle]:
    """Return the cycles among consumers, at most 20.

    Parameters:
        declarations: the declarations of flows, by the name of the consumer.
    """
    # From each node to its predecessors: a consumer's are the assets of its schedule, an asset's are its producers.
    before: dict[Node, dict[Node, None]] = {}
    uris = uris_of_names(declarations.values())
    for name, declaration in sorted(declarations.items()):
        before[name] = {resolved(leaf.token, uris): None for leaf in _leaves(declaration)}
        for outlet in declaration.produces:
            before.setdefault(resolved(outlet.token, uris), {})[name] = None
    found: list[Cycle] = []
    while len(found) < MOST and (nodes := _one_cycle(before)):
        path = _from_first_consumer(nodes)
        found.append(Cycle(path))
        # Break this cycle, so that the search finds the next one.
        before[path[-1]].pop(path[-2])
    return found


def _leaves(declaration: FlowDeclaration) -> Iterable[Leaf]:
    condition = declaration.options.schedule.condition
    return () if condition is None else condition.leaves


def _one_cycle(before: Mapping[Node, Iterable[Node]]) -> list[Node] | None:
    """Return the nodes of a cycle, the first one at both ends, or `None`."""
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


def _from_first_consumer(nodes: list[Node]) -> tuple[Node, ...]:
    ring = nodes[:-1]
    first = min(node for node in ring if isinstance(node, str))
    start = ring.index(first)
    return (*ring[start:], *ring[:start], first)


class WatcherNames:
    """The names of watchers of all deployments.

    Parameters:
        deployed: the deployments, by id, as they are now.

    Attributes:
        conflicts: the deployments that give a name to another trigger than others do.
    """

    def __init__(self, deployed: Mapping[UUID, Deployed]) -> None:
        self._deployed = deployed
        self.conflicts: set[UUID] = set()

    def check(self, deployed: Deployed) -> NameTaken | None:
        """Return the error if another deployment gives the name of a watcher to another trigger."""
        mine = {each.name: each for each in _watchers_of(deployed)}
        self.conflicts.discard(deployed.id)
        if not mine:
            return None
        for other in self._deployed.values():
            if other.id == deployed.id or other.id in self.conflicts:
                continue
            for theirs in _watchers_of(other):
                if theirs.name in mine and mine[theirs.name].trigger != theirs.trigger:
                    self.conflicts.add(deployed.id)
                    return _name_taken(deployed, mine[theirs.name], other, theirs)
        return None


def _name_taken(deployed: Deployed, mine: AssetWatcher, other: Deployed, theirs: AssetWatcher) -> NameTaken:
    return NameTaken(
        f"the watcher {mine.name!r} is {theirs.trigger.describe()} in {other.where}, and "
        f"{mine.trigger.describe()} here",
        where=deployed.where,
        fix="Give one of them another name, or deploy both with the same trigger",
        rule="10.1",
    )


def _watchers_of(deployed: Deployed) -> Iterable[AssetWatcher]:
    assets = () if deployed.declaration is None else deployed.declaration.assets
    return (watcher for asset in assets for watcher in asset.watchers)


LONGEST_REPORT = 50_000
# So many automations of unchanged deployments are updated in a row: this version may show more than the one before.
RESHOWN_AT_ONCE = 20

What = Literal["deployed", "changed", "removed", "paused", "resumed", "held", "released", "shown", "reshown", "hidden"]


@dataclass(frozen=True)
class ReconcileStep:
    """A change of a consumer or (shown, reshown, hidden) of the automation of a deployment."""

    what: What
    name: str


@dataclass
class SyncReport:
    """The result of reconciling deployments.

    Attributes:
        steps: the steps that were made, at most the last 50,000.
        scheduled: the deployments that have a schedule.
        problems: the deployments that cannot be used, or not be reconciled now; their consumers stay as they were.
        cycles: the cycles on which consumers may start each other for ever.
        warnings: what cannot come about as it is declared: Lazy flows that never run, policies that cannot be held.
    """

    steps: deque[ReconcileStep] = field(default_factory=lambda: deque[ReconcileStep](maxlen=LONGEST_REPORT))
    scheduled: dict[UUID, Deployed] = field(default_factory=dict[UUID, Deployed])
    problems: dict[UUID, AssetflowError] = field(default_factory=dict[UUID, AssetflowError])
    cycles: list[Cycle] = field(default_factory=list[Cycle])
    warnings: list[str] = field(default_factory=list[str])


class Reconciler:
    """Reconciles deployments, one at a time.

    Parameters:
        shown: assetflow's automations in Prefect, by id; the reconciler adds those that it makes and removes those that
            it deletes.
        report: receives each step.

    Attributes:
        postponed: the deployments whose automations have to be updated by a later look.
    """

    def __init__(
        self,
        ledger: LedgerThread,
        automations: Automations,
        open_runs: OpenRuns,
        shown: dict[UUID, ShownAutomation],
        report: SyncReport,
    ) -> None:
        self._ledger = ledger
        self._writer = ledger.writer.consumers
        self._automations = automations
        self._open_runs = open_runs
        self._going_on: Sequence[RunGoingOn] | None = None
        self._shown = shown
        self._report = report
        self._left = RESHOWN_AT_ONCE
        self.postponed: set[UUID] = set()

    def begin_look(self) -> None:
        """Begin to reconcile: some automations of unchanged deployments may be updated again."""
        self._left = RESHOWN_AT_ONCE
        self._going_on = None
        self.postponed.clear()

    async def remove(self, deployment_id: UUID, known: ConsumerRecord | None, shown: Sequence[ShownAutomation]) -> None:
        """Remove the consumer and the automations of a deployment that is gone, or has no schedule any more.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError
        """
        self._report.scheduled.pop(deployment_id, None)
        self._report.problems.pop(deployment_id, None)
        if known is not None:
            await self._ledger.call(self._writer.remove, known.consumer.id, self._ledger.now())
            self._note("removed", known.consumer.name)
        for each in shown:
            await self._hide(each)

    async def reconcile(
        self, deployed: Deployed, known: ConsumerRecord | None, shown: Sequence[ShownAutomation]
    ) -> None:
        """Create or update the consumer of one deployment, and the automation that shows its schedule, if it has one.

        Raises:
            PrefectUnreachable, PrefectRefused, LedgerError, AssetflowError: its schedule cannot be used.
        """
        wanted = automation_for(deployed.id, deployed.name, deployed.options) if deployed.is_scheduled else None
        kept = await self._keep(known, shown)
        # The automation's switch is the pause. A deleted automation is made again as the ledger remembers it.
        paused = not kept.enabled if kept is not None else known is not None and known.consumer.paused
        if known is None:
            consumer = await self.deploy(deployed, paused=paused, held=deployed.held)
            self._note("deployed", deployed.name)
        else:
            consumer = known.consumer
            await self._change(known, deployed, paused)
        automation_id: UUID | None = None
        if wanted is None:
            # The evaluator judges its policies. Without a schedule, it has nothing for an automation to show.
            self._report.scheduled.pop(deployed.id, None)
        else:
            self._report.scheduled[deployed.id] = deployed
            unchanged = known is not None and known.declaration == deployed.text
            automation_id = await self._show(deployed, wanted, kept, enabled=not paused, unchanged=unchanged)
        if automation_id != (None if known is None else known.automation_id):
            await self._ledger.call(self._writer.set_automation, consumer.id, automation_id)
        for each in shown:
            if each.id != automation_id:
                await self._hide(each)

    async def deploy(self, deployed: Deployed, *, paused: bool, held: bool) -> Consumer:
        """Add a consumer for a deployment, or give the one that it is its new declaration.

        Raises:
            NameTaken, InvalidSchedule, LedgerError
        """
        told = (deployed.name, deployed.id, deployed.flow_id, deployed.text, paused, held)
        going_on, late = await self._runs_that_go_on(deployed), self._ledger.is_late
        consumer, _ = await self._ledger.call(
            self._writer.deploy, *told, self._ledger.now(), late=late, created=deployed.created, going_on=going_on
        )
        return consumer

    async def _runs_that_go_on(self, deployed: Deployed) -> Sequence[RunGoingOn]:
        """Return the runs of all flows that go on, if an Eager or Lazy flow may have to wait for them (8.6)."""
        if deployed.options.schedule.keeping is None:
            return ()
        if self._going_on is None:
            self._going_on = [run.moved(self._ledger.by_ledger) async for run in self._open_runs.all()]
        return self._going_on

    async def _keep(self, known: ConsumerRecord | None, shown: Sequence[ShownAutomation]) -> ShownAutomation | None:
        """Return the one automation to keep: the ledger's, else one that is switched off, else any; `None` for none."""
        automation_id = known.automation_id if known is not None else None
        if not shown and automation_id is not None:
            return await self._automations.find(automation_id)
        return min(shown, key=lambda each: (each.id != automation_id, each.enabled, each.id), default=None)

    async def _change(self, known: ConsumerRecord, deployed: Deployed, paused: bool) -> None:
        consumer = known.consumer
        try:
            if known.declaration != deployed.text:
                going_on = await self._runs_that_go_on(deployed)
                told = (consumer.id, deployed.text, self._ledger.now())
                await self._ledger.call(self._writer.change, *told, late=self._ledger.is_late, going_on=going_on)
                self._note("changed", deployed.name)
        except LedgerError:
            raise
        except AssetflowError:
            # The consumer that a refused deployment still is has its switches, too.
            await self._switch(consumer, deployed, paused)
            raise
        await self._switch(consumer, deployed, paused)

    async def _switch(self, consumer: Consumer, deployed: Deployed, paused: bool) -> None:
        now, late = self._ledger.now(), self._ledger.is_late
        if consumer.paused != paused:
            await self._ledger.call(self._writer.switch, consumer.id, paused=paused, now=now, late=late)
            self._note("paused" if paused else "resumed", deployed.name)
        if consumer.held != deployed.held:
            await self._ledger.call(self._writer.switch, consumer.id, held=deployed.held, now=now, late=late)
            self._note("held" if deployed.held else "released", deployed.name)

    async def _show(
        self,
        deployed: Deployed,
        wanted: AutomationCore,
        kept: ShownAutomation | None,
        *,
        enabled: bool,
        unchanged: bool,
    ) -> UUID:
        """Create or update the automation of a deployment, and return its id. That of an unchanged one may wait."""
        if kept is None:
            created = await self._automations.create(deployed.id, wanted, enabled=enabled)
            self._note("shown", deployed.name)
            self._shown[created.id] = created
            return created.id
        if not self._automations.is_in_step(kept, wanted):
            if unchanged and self._left == 0:
                self.postponed.add(deployed.id)
            else:
                self._left -= unchanged
                await self._automations.update(kept, wanted)
                self._note("reshown", deployed.name)
        self._shown.setdefault(kept.id, kept)
        return kept.id

    async def _hide(self, shown: ShownAutomation) -> None:
        await self._automations.delete(shown.id)
        self._shown.pop(shown.id, None)
        self._note("hidden", shown.name)

    def _note(self, what: What, name: str) -> None:
        self._report.steps.append(ReconcileStep(what, name))
        logger.info("%s %s", what, name)
