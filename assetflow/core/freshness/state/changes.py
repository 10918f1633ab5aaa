"""The changes of a unit of work, which a ledger writes when the unit ends."""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from assetflow.core.freshness.records import FlowRecord, ItemUpdate, Run, RunState, Target, TargetRecord

if TYPE_CHECKING:
    from assetflow.core.freshness.state.backfills import Backfill, BackfillItem
    from assetflow.core.freshness.state.policies import PolicyChange, PolicyRecord


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
