"""The changes of a unit of work, which a ledger writes when the unit ends."""

from __future__ import annotations

from collections.abc import Hashable, Set
from datetime import datetime
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Generic, TypeVar
from uuid import UUID

from assetflow.core.freshness.records import FlowRecord, ItemUpdate, Run, RunState, Target, TargetRecord

if TYPE_CHECKING:
    from assetflow.core.freshness.state.policies import PolicyChange, PolicyRecord
    from assetflow.core.freshness.state.targets import Backfill, BackfillItem


class FreshnessChanges:
    """The changes since a unit of work began.

    Attributes:
        updates: the new updates and confirmations, in order.
        seen: the updates that observations saw by id, each with the last observation.
        readings: new pairs of a target and a key of an input that it reads.
        target_keys: the new targets of partitioned flows.
        forgotten: the flows whose readings and targets from before the unit do not count any more.
        flows: since when flows are as they are; `None` for one that was removed.
        targets: what is remembered of targets from now on.
        looks: when targets have to be looked at again; `None` for not at all.
        set_aside: the flows whose targets are judged later: the keys that are not, and when that may begin.
        begun: the runs that began, or began later than was known.
        ended: the runs that ended, with their state and the instant.
        policies: what is remembered of policies; `None` for one that is gone.
        touched: the assets whose policies have to be judged, each with the instant at which something happened.
        judged: up to when the policies are judged; `None` if they were not.
        told: the changes of state of policies, in order: the outbox of the events in Prefect.
        backfills: the backfills that were made or went on.
        steps: what became of the targets of backfills, by backfill and place.
        edges: what the targets of new backfills wait for: the backfill, the place above and the place below.
        rests: True if nothing was compared any more, so that nothing from before this unit has to be looked at.
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
        self.told: list[PolicyChange] = []
        self.backfills: dict[int, Backfill] = {}
        self.steps: dict[tuple[int, int], BackfillItem] = {}
        self.edges: list[tuple[int, int, int]] = []
        self.rests = False

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
