"""The state of chapter 8: the data graph, updates, readings, runs, targets, policies and backfills.

It is the part of a state that versions and freshness need. Like the rest of the state it reads from its source what it
does not remember, and notes its changes. Without a source it holds everything itself, as in the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from assetflow.core.freshness.graph import FlowNode, Resolve, TokensOf
from assetflow.core.freshness.records import FlowRecord, Moment, Target
from assetflow.core.freshness.state.source import FreshnessChanges, FreshnessSource
from assetflow.core.freshness.state.targets import Backfills, Policies, Runs, Targets
from assetflow.core.freshness.state.updates import Readings, Updates
from assetflow.core.kept import Mirror
from assetflow.core.values.consumers import Consumer


@dataclass
class Agenda:
    """The targets, flows and assets to judge in the next pass.

    Attributes:
        targets: the targets to judge.
        flows: the flows whose runs, updates or declarations changed: what waits below them may run now.
        assets: the assets that were updated or observed.
        instants: the instants of the updates.
        catching_up: the targets whose flow was deployed or resumed; they run a few at a time (8.18).
    """

    targets: dict[Target, None] = field(default_factory=dict[Target, None])
    flows: dict[int, None] = field(default_factory=dict[int, None])
    assets: dict[str, None] = field(default_factory=dict[str, None])
    instants: dict[datetime, None] = field(default_factory=dict[datetime, None])
    catching_up: dict[Target, None] = field(default_factory=dict[Target, None])

    def add(self, target: Target) -> None:
        """Add a target."""
        self.targets[target] = None
        self.flows[target.consumer] = None

    def add_catching_up(self, target: Target) -> None:
        """Add a target whose flow was deployed, or paused until now."""
        self.add(target)
        self.catching_up[target] = None

    def take(self) -> Agenda:
        """Return what is on the agenda, and clear it."""
        taken = Agenda(self.targets, self.flows, self.assets, self.instants, self.catching_up)
        self.targets, self.flows, self.assets, self.instants, self.catching_up = {}, {}, {}, {}, {}
        return taken


MOST_CATCHING_UP = 16
# A transaction judges at most so many targets that a deploy concerns, so that others need not wait for long.
MOST_JUDGED = 500


class FreshnessState:
    """The state of chapter 8.

    Parameters:
        resolve: returns the URI of a token; `None` for a name that nobody has.
        tokens_of: returns the tokens of a URI, by which mappers are found.
        place: returns the sequence of the newest update in the ledger.
        in_memory: whether this state has to remember every update, because nobody else does. In a ledger, it
            knows flows only if one of them keeps its outputs up to date, or declares a freshness policy, and compares
            only what that concerns.

    Attributes:
        agenda: what the next pass has to look at.
        order: the place of this unit of work among all; in memory, that of the last moment.
        most_catching_up: how many targets of a flow run at a time because `catchup` asks for them; `None` for any
            number (8.18).
        most_judged: how many targets a pass judges at most because their flow was deployed or resumed; `None` for any
            number.
    """

    def __init__(
        self,
        source: FreshnessSource,
        resolve: Resolve,
        tokens_of: TokensOf,
        place: Callable[[], int],
        *,
        in_memory: bool = True,
    ) -> None:
        self._is_all = in_memory
        self._source = source
        self.place = place
        self.resolve = resolve
        self.changes = FreshnessChanges()
        self._tokens_of = tokens_of
        self.graph = source.graph(resolve, tokens_of)
        self._forget()
        self.agenda = Agenda()
        self.order = 0
        self.most_catching_up = None if in_memory else MOST_CATCHING_UP
        self.most_judged = None if in_memory else MOST_JUDGED
        self._compared = frozenset[str]() if in_memory else self.graph.compared()

    def moment(self, now: datetime) -> Moment:
        """Return a moment: now, after the newest update in the ledger and all earlier moments."""
        self.order += self._is_all
        return Moment(now, self.place(), self.order)

    @property
    def compares(self) -> bool:
        """True if anything is compared: in memory always, in a ledger if something has to be kept fresh."""
        return self._is_all or bool(self.graph.all())

    @property
    def compared(self) -> frozenset[str]:
        """The assets whose updates a ledger compares; empty in memory, where all are."""
        return self._compared

    def concerns(self, uri: str) -> bool:
        """Return True if the updates of an asset are compared."""
        return self._is_all or uri in self._compared

    def admit(self, consumer: Consumer) -> bool:
        """Prepare for a consumer that is deployed or changed; return False if nothing is compared."""
        if self.compares:
            return True
        if consumer.schedule.keeping is None and not consumer.options.data.policies:
            return False
        self.admit_all()
        return True

    def admit_all(self) -> None:
        """Know all flows, because one of them is compared or backfilled."""
        if not self.compares:
            self.graph = self._source.whole_graph(self.resolve, self._tokens_of)

    def put(self, consumer: Consumer) -> FlowNode | None:
        """Add a flow to the graph, or replace it; return `None` if there is nothing that it could be compared with."""
        old = self.graph.find(consumer.id)
        self.graph.put(consumer)
        self._follow_graph([old])
        return self.graph.find(consumer.id)

    def remove(self, number: int) -> None:
        """Take a flow out of the graph."""
        old = self.graph.find(number)
        self.graph.remove(number)
        self._follow_graph([old])

    def made_from(self, uri: str, inputs: Iterable[str]) -> None:
        """Remember what an asset was made from, also if its maker does not read that: it tells how old it is (8.12)."""
        new = self.graph.add_earlier_inputs(uri, inputs)
        if new:
            self.changes.earlier_inputs |= dict.fromkeys((uri, each) for each in new)
            self._follow_graph()

    def renamed(self, name: str) -> None:
        """Resolve references to a name again, because its asset became known."""
        old = self.graph.renamed(name)
        if old:
            self._follow_graph(old)

    def begin(self) -> None:
        """Begin a unit of work: clear the changes of the one before, if something is compared."""
        if self.compares or self.changes.flows or self.changes.is_idle:
            self.changes.begin()

    def idle(self) -> None:
        """Clear the clock if nothing is compared: no pass would follow what it finds due."""
        if not self.compares:
            self.changes.is_idle = True

    def renew(self) -> None:
        """End a unit of work: what it changed is written. Only the graph is remembered."""
        if self.compares:
            self._forget()

    def _forget(self) -> None:
        """Forget everything but the graph: it is in the source, and other processes may change it."""
        source, changes = self._source, self.changes
        self.updates = Updates(source, changes)
        self.readings = Readings(source, changes)
        self.runs = Runs(source, changes)
        self.targets = Targets(source, changes)
        self.policies = Policies(source, changes)
        self.backfills = Backfills(source, changes)
        self._flows = Mirror[int, FlowRecord].one_by_one(source.flow_record)

    def _follow_graph(self, old: Iterable[FlowNode | None] = ()) -> None:
        """Follow a change of the graph: compare what it concerns from now on; with nothing to keep fresh, nothing.

        Parameters:
            old: the flows as they were that were replaced or removed.
        """
        for node in old:
            for uri, depends in node.outputs.items() if node is not None else ():
                self.made_from(uri, depends)
        if self._is_all:
            return
        if not (self.graph.has_keepers or self.graph.has_policies or self.backfills.live()):
            for node in list(self.graph.all()):
                self.graph.remove(node.id)
                self.save_flow(node.id, None)
            self.idle()
        compared = self.graph.compared()
        new = sorted(compared - self._compared)
        self._compared = compared
        if new:
            makers = {uri: {each.consumer.deployment_id: each.id for each in self.graph.makers(uri)} for uri in new}
            self._source.track(makers)

    def keys_set_aside(self, number: int) -> Sequence[str]:
        """Return the target keys of a flow that this unit of work leaves to later ones to judge."""
        others = self.targets.not_set_aside(number)
        return () if others is None else [key for key in self.readings.targets(number) if key not in others]

    def flow_record(self, number: int) -> FlowRecord | None:
        """Return the record of a flow, or `None` if the flow is unknown."""
        return self._flows[number]

    def save_flow(self, number: int, record: FlowRecord | None) -> None:
        """Save the record of a flow; `None` deletes it."""
        self._flows[number] = self.changes.flows[number] = record
