"""What the parts of the state read from: a source. What they write: changes. And when they look again: alarms."""

# The methods of the source answer for an empty one: those without a statement know nothing, and return `None`.
# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Set
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Generic, TypeVar
from uuid import UUID

from assetflow.core.freshness.graph import DataGraph, Resolve, TokensOf
from assetflow.core.freshness.records import (
    Backfill,
    BackfillItem,
    FlowRecord,
    Item,
    ItemUpdate,
    Moment,
    PolicyChange,
    PolicyRecord,
    Run,
    RunState,
    StepState,
    Target,
    TargetRecord,
    VersionRun,
)

REMEMBERED = 20
"""Of so many completed runs of a flow is remembered how long they took (8.15)."""


class FreshnessSource:
    """The state that was committed before the unit of work began. This base class is an empty source.

    Each method is one query by index, whose cost does not grow with what it leaves out.
    """

    def graph(self, resolve: Resolve, tokens_of: TokensOf) -> DataGraph:
        """Return the graph of all flows if one of them keeps its outputs up to date, and else an empty one.

        It is asked for once, and may be changed.
        """
        return DataGraph((), resolve, tokens_of)

    def whole_graph(self, resolve: Resolve, tokens_of: TokensOf) -> DataGraph:
        """Return the graph of all flows, because the first one is deployed that keeps its outputs up to date."""
        return DataGraph((), resolve, tokens_of)

    def track(self, makers: Mapping[str, Mapping[UUID, int]]) -> None:
        """Remember the updates of assets that were recorded while nothing compared them.

        Parameters:
            makers: the assets, each with its makers: their numbers by deployment.
        """

    def flow_record(self, consumer: int) -> FlowRecord | None:
        """Return the record of a flow."""

    def newest(self, items: Collection[Item]) -> Iterable[tuple[Item, ItemUpdate]]:
        """Return the newest update of each of these items."""
        return ()

    def newest_of(self, uri: str, until: datetime | None = None) -> ItemUpdate | None:
        """Return the newest update of an asset, whatever its key; with `until`, that of an earlier instant."""

    def first_of(self, uri: str, since: Moment) -> ItemUpdate | None:
        """Return the first update of a key of an asset since a moment."""

    def first(self, item: Item) -> ItemUpdate | None:
        """Return the first update of an item."""

    def as_of(self, item: Item, sequence: int) -> ItemUpdate | None:
        """Return the newest update of an item up to a place in the ledger."""

    def version_run(self, update: ItemUpdate) -> VersionRun:
        """Return the updates with the same version that followed an update directly."""
        return VersionRun(update, None)

    def history(self, item: Item) -> Iterator[ItemUpdate]:
        """Yield the updates of an item, the newest first, read in pages."""
        return iter(())

    def of_asset(self, uri: str) -> Iterator[ItemUpdate]:
        """Yield the updates of an asset, whatever their keys, the newest first, read in pages."""
        return iter(())

    def keys(self, uri: str, most: int | None = None) -> Collection[str]:
        """Return the keys of an asset, the greatest first; with `most`, only that many."""
        return ()

    def count_keys(self, uri: str) -> int:
        """Return how many keys an asset has."""
        return 0

    def changed(self, uri: str, after: int) -> Iterable[Item]:
        """Return the items of an asset whose newest update came after a place in the ledger."""
        return ()

    def readings_of(self, consumer: int, keys: Collection[str]) -> Iterable[tuple[str, str, str]]:
        """Return the keys of inputs that map to some targets of a consumer: target key, URI of the input, and key."""
        return ()

    def target_keys(self, consumer: int, most: int | None = None) -> Collection[str]:
        """Return the target keys of a partitioned consumer, the greatest first; with `most`, only that many."""
        return ()

    def has_target(self, target: Target) -> bool:
        """Return True if a key is one of the target keys of a partitioned consumer."""
        return False

    def count_targets(self, consumer: int) -> int:
        """Return how many targets a partitioned consumer has."""
        return 0

    def records(self, targets: Collection[Target]) -> Iterable[tuple[Target, TargetRecord]]:
        """Return the records of these targets."""
        return ()

    def with_verdict(self, verdict: str, consumer: int, most: int | None = None) -> Iterable[Target]:
        """Return the targets of a consumer with this verdict; with `most`, only the greatest keys."""
        return ()

    def verdicts(self, consumer: int) -> Mapping[str, int]:
        """Return the verdicts on the known targets of a consumer, each with the number of targets."""
        return {}

    def consumers_with(self, verdict: str) -> Iterable[int]:
        """Return the consumers that have targets with this verdict."""
        return ()

    def due_targets(self, until: datetime, most: int | None = None) -> Iterable[Target]:
        """Return the targets to look at by a moment: the earliest first, and of one moment the greatest keys."""
        return ()

    def next_due_target(self) -> datetime | None:
        """Return when the next target has to be looked at."""

    def waiting(self, consumers: Collection[int]) -> Iterable[Target]:
        """Return the targets of these consumers that wait for others."""
        return ()

    def runs(self, consumers: Collection[int]) -> Iterable[Run]:
        """Return the open runs of these consumers, those of each in the order in which they began."""
        return ()

    def durations(self, consumer: int) -> Iterable[timedelta]:
        """Return how long the last 20 completed runs of a consumer took, the oldest first."""
        return ()

    def policy(self, uri: str) -> PolicyRecord | None:
        """Return what is remembered of the policy of an asset."""

    def policies(self) -> Iterable[tuple[str, PolicyRecord]]:
        """Return what is remembered of all policies, by URI."""
        return ()

    def due(self, until: datetime) -> Iterable[str]:
        """Return the assets whose makers are due up to a moment."""
        return ()

    def next_look(self) -> datetime | None:
        """Return the next instant at which a maker is due, or the state of a policy has to be judged."""

    def changing(self, until: datetime) -> Iterable[str]:
        """Return the assets whose policies may change up to a moment although nothing happens."""
        return ()

    def touched(self, until: datetime) -> Iterable[tuple[str, datetime]]:
        """Return the assets to which something happened up to a moment, each with the instant."""
        return ()

    def backfills(self) -> Iterable[Backfill]:
        """Return the open backfills, also those that were stopped, in order."""
        return ()

    def backfills_of(self, target: Target) -> Iterable[Backfill]:
        """Return the backfills of which a target is part, also those that are over."""
        return ()

    def step(self, backfill: int, target: Target) -> BackfillItem | None:
        """Return a target in a backfill."""

    def ready_steps(self, backfill: int) -> Iterator[BackfillItem]:
        """Yield the targets of a backfill that wait for nothing above them, in order, read in pages."""
        return iter(())

    def steps_below(self, backfill: int, places: Collection[int]) -> Iterable[BackfillItem]:
        """Return the targets of a backfill that wait directly for one of these places."""
        return ()

    def steps_in(
        self, backfill: int, states: Collection[StepState], consumer: int | None = None
    ) -> Iterable[BackfillItem]:
        """Return the targets of a backfill that are in one of these states; with `consumer`, only of this one."""
        return ()

    def run_of(self, flow_run: UUID) -> Run | None:
        """Return what is remembered of a flow run, also after its end."""

    def seen(self, update: ItemUpdate) -> datetime | None:
        """Return when an observation saw an update last."""


class FreshnessChanges:
    """The changes since a unit of work began.

    Attributes:
        updates: the new updates and confirmations, in order.
        seen: the updates that observations saw by id, each with the last observation.
        readings: new pairs of a target and a key of an input that it reads.
        target_keys: the new targets of partitioned flows.
        forgotten: the flows whose readings and targets from before the unit do not count any more.
        flows: the records of flows; `None` for a removed flow.
        targets: the new and changed records of targets.
        looks: when targets have to be looked at again; `None` for not at all.
        set_aside: the flows whose targets are judged later: the keys that are not, and when that may begin.
        begun: the runs that began, or began later than was known.
        ended: the runs that ended, with their state and the instant.
        policies: what is remembered of policies; `None` for one that is gone.
        touched: the assets whose policies have to be judged, each with the instant at which something happened.
        judged: up to when the policies are judged; `None` if they were not.
        policy_changes: the changes of states to report, in order: each becomes one event in Prefect.
        earlier_inputs: new pairs of an asset and what it was made from and its makers do not read.
        backfills: the new and changed backfills.
        steps: what became of the targets of backfills, by backfill and place.
        edges: what the targets of new backfills wait for: the backfill, the place above and the place below.
        is_idle: True if nothing was compared any more, so that nothing from before this unit has to be looked at.
    """

    def __init__(self) -> None:
        self.updates: list[ItemUpdate] = []
        self.seen: dict[UUID, tuple[ItemUpdate, datetime]] = {}
        self.readings: list[tuple[Target, str, str]] = []
        self.target_keys: dict[Target, None] = {}
        self.forgotten: dict[int, None] = {}
        self.flows: dict[int, FlowRecord | None] = {}
        self.targets: dict[Target, TargetRecord] = {}
        self.looks: dict[Target, datetime | None] = {}
        self.set_aside: dict[int, tuple[Set[str], datetime]] = {}
        self.begun: dict[UUID, Run] = {}
        self.ended: dict[UUID, tuple[Run, RunState, datetime]] = {}
        self.policies: dict[str, PolicyRecord | None] = {}
        self.touched: dict[tuple[str, datetime], None] = {}
        self.judged: datetime | None = None
        self.policy_changes: list[PolicyChange] = []
        self.earlier_inputs: dict[tuple[str, str], None] = {}
        self.backfills: dict[int, Backfill] = {}
        self.steps: dict[tuple[int, int], BackfillItem] = {}
        self.edges: list[tuple[int, int, int]] = []
        self.is_idle = False

    def begin(self) -> None:
        """Begin the next unit of work and clear the changes of the one before."""
        self.__init__()


K = TypeVar("K", bound=Hashable)


class Alarms(Generic[K]):
    """For each of some keys, the moment at which it has to be looked at."""

    def __init__(self) -> None:
        self._moments: dict[K, datetime] = {}
        # In the order of time; entries whose key has another moment by now are void.
        self._heap: list[tuple[datetime, int, K]] = []
        self._count = 0

    def set(self, key: K, moment: datetime | None) -> None:
        """Set when a key is due; `None` cancels its alarm."""
        if moment is None:
            self._moments.pop(key, None)
        elif self._moments.get(key) != moment:
            self._moments[key] = moment
            self._count += 1
            heappush(self._heap, (moment, self._count, key))

    def next(self) -> datetime | None:
        """Return the earliest moment; `None` without alarms."""
        while self._heap:
            moment, _, key = self._heap[0]
            if self._moments.get(key) == moment:
                return moment
            heappop(self._heap)
        return None

    def take(self, until: datetime) -> list[K]:
        """Remove and return the keys that are due, earliest first."""
        found: list[K] = []
        while (moment := self.next()) is not None and moment <= until:
            _, _, key = heappop(self._heap)
            del self._moments[key]
            found.append(key)
        return found
