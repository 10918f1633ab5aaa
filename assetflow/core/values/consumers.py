"""The values of contract chapters 3 and 4: consumers, receipts, decisions, missed deadlines."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID, uuid5

from assetflow.core.shapes import HIDDEN, shape
from assetflow.core.values.conditions import Token
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.keeping import Cause
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.values.timing import OnDeadline

DECISIONS = UUID("2d5b8a3e-8f0b-5a0e-b6b1-6c1f4b9f0d42")
"""The namespace of the ids of decisions."""

ReceiptStatus = Literal[
    "queued",
    "consumed",
    "dropped",
    "removed",
    "not_for_consumer",
    "not_mapped",
    "superseded",
    "no_consumer",
    "expired",
    "skipped",
    "compared",
]
DecisionKind = Literal["asset", "time", "backfill", "eager", "lazy"]


@dataclass(frozen=True, slots=True)
class Consumer:
    """One deployment of a flow that is scheduled on assets or time, or stands in the data graph.

    Attributes:
        id: the consumer's number in the ledger; passes visit consumers in this order.
        name: `flow/deployment`.
        paused: its automation is switched off (3.4).
        held: its deployment is paused: events are queued, but there are no decisions (3.4).
        deployed: the instant of its last deploy, or of a switch that was found late, UTC; `None` if it is not known.
            Openings and deadlines before it do not count (9.6).
        switched_late: `deployed` is the instant of such a switch.
        schedule, coalesces: taken from `options`.
        takes_nothing: it is paused and drops the updates that come meanwhile.
        decides: a pass may make decisions for it.
        is_partitioned: its schedule maps partition keys.
        is_timed: its decisions depend on instants (chapter 9): time gates, opening hours, an intake or a deadline.
        fewest: how many assets at least need a queued event before its condition can hold.
    """

    id: int
    name: str
    deployment_id: UUID
    options: ConsumerOptions = field(default_factory=ConsumerOptions)
    paused: bool = False
    held: bool = False
    deployed: datetime | None = field(default=None, compare=False)
    switched_late: bool = field(default=False, compare=False)
    # Derived from the fields above, once, because the fold needs it for each event.
    schedule: Schedule = field(init=False, repr=False, compare=False)
    coalesces: bool = field(init=False, repr=False, compare=False)
    takes_nothing: bool = field(init=False, repr=False, compare=False)
    decides: bool = field(init=False, repr=False, compare=False)
    is_partitioned: bool = field(init=False, repr=False, compare=False)
    is_timed: bool = field(init=False, repr=False, compare=False)
    cooldown: timedelta | None = field(init=False, repr=False, compare=False)
    fewest: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        schedule = self.options.schedule
        derived = {
            "schedule": schedule,
            "coalesces": self.options.coalesce,
            "takes_nothing": self.paused and self.options.while_paused == "drop",
            "decides": not (self.paused or self.held) and schedule.condition is not None,
            "is_partitioned": schedule.is_partitioned,
            "is_timed": self.options.is_timed,
            "cooldown": self.options.intake.cooldown,
            "fewest": max(1, len(schedule.condition.needed_uris)) if schedule.condition is not None else 1,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def deadline_of_opening(self) -> bool:
        """Return True if a deadline counts from each opening, and not from the oldest queued event (9.8)."""
        return self.schedule.opening is not None and not self.is_partitioned

    def no_earlier(self, moment: datetime) -> datetime:
        """Return an instant, or that of the last deploy if it comes later: nothing counts before it (9.6)."""
        return moment if self.deployed is None else max(moment, self.deployed)

    @property
    def data_tokens(self) -> frozenset[Token]:
        """The tokens of everything that the flow reads, makes or is scheduled on."""
        return self.options.input_tokens | self.options.data.tokens

    def wants_key(self, partition_key: str | None) -> bool:
        """Return True if the consumer takes events with this key, or with `None`. Contract 3.3."""
        return (partition_key is not None) == self.is_partitioned


@dataclass(frozen=True)
class Automation:
    """The automation that shows a consumer's schedule in Prefect."""

    id: UUID
    name: str


class Receipt(NamedTuple):
    """The outcome of one event for one consumer, and for one target key if it is partitioned. Contract 3.5.

    It is a named tuple because each event makes several receipts, and tuples are the quickest to make.

    Attributes:
        event: the event's sequence in the ledger.
        uri: the URI of the event's asset.
        consumer: the consumer's id; `None` for `no_consumer`.
        target_key: the key of the pending partition; `None` for plain consumers, and if no key was mapped.
        decision: the id of the decision that consumed the event.
        by, why: who removed the event, and the reason given.
        error: the mapper's error (5.4).
        at: when the event expired or was skipped, UTC (9.5, 9.8).
    """

    event: int
    uri: str
    consumer: int | None
    status: ReceiptStatus
    target_key: str | None = None
    decision: UUID | None = None
    by: str = ""
    why: str = ""
    error: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The record that a consumer's condition held: it consumes events and leads to one run. Contract 4.2, 4.6.

    A decision of the kind `backfill` is made by an operator for a target key, and consumes nothing (4.5).

    Attributes:
        id: the decision's id, which is the idempotency key of its run.
        consumer: the consumer's id.
        target_key: the key of the run; `None` for plain consumers.
        events: the consumed events, oldest first.
        made: the instant of the decision, UTC (9.6).
        opening: the latest opening of its schedule, which becomes the scheduled time of its run (9.7).
        by_deadline: True if a missed deadline was the reason, not the condition (9.8).
        scheduled: when its run is to start, UTC: a cooldown after the run before, if the two were decided on late;
            `None` for at once (9.11).
        because: why an Eager or Lazy flow or a backfill asked for the run (8.5).
    """

    id: UUID
    consumer: int
    deployment_id: UUID
    target_key: str | None
    events: tuple[AssetEvent, ...]
    made: datetime
    kind: DecisionKind = "asset"
    opening: datetime | None = None
    by_deadline: bool = False
    scheduled: datetime | None = None
    because: tuple[Cause, ...] = ()


@shape
class DecisionMade:
    """A decision that an action led to."""

    id: UUID
    consumer: str
    target_key: str | None

    @classmethod
    def of(cls, consumer: str, decision: Decision) -> DecisionMade:
        """Return the decision as it is shown; `consumer` is the name of its consumer."""
        return cls(decision.id, consumer, decision.target_key)


@shape
class MissedDeadline:
    """The record that no decision came in time (9.8)."""

    consumer: int = field(metadata=HIDDEN)
    target_key: str | None
    due: datetime
    """When the decision should have come."""
    at: datetime
    """When the clock looked: later than `due` only after a pause, a redeploy, or behind another event."""
    then: OnDeadline
    queued: int
    """How many events were queued then."""
    missing: tuple[str, ...]
    """The assets and aliases of the condition of which no update was queued, each by its URI or its name."""


def backfill_id(deployment_id: UUID, target_key: str, attempt: int) -> UUID:
    """Return the id of a backfill's decision for a target key: a different one for each `attempt`."""
    return uuid5(DECISIONS, "|".join(("backfill", str(deployment_id), target_key, str(attempt))))
