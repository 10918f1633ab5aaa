"""Consumers, receipts and decisions: the values that the fold reads and writes (contract chapters 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID, uuid5

from assetflow.core.events import AssetEvent
from assetflow.core.schedules import ConsumerOptions, Schedule

_NAMESPACE = UUID("2d5b8a3e-8f0b-5a0e-b6b1-6c1f4b9f0d42")

ReceiptStatus = Literal[
    "queued", "consumed", "dropped", "removed", "not_for_consumer", "not_mapped", "superseded", "no_consumer"
]
DecisionKind = Literal["asset", "time", "backfill"]


@dataclass(frozen=True, slots=True)
class Consumer:
    """One deployment of a flow that is scheduled on assets or time.

    Attributes:
        id: its number in the ledger; consumers are passed in this order.
        name: `flow/deployment`.
        paused: its automation is switched off (3.4).
        held: the deployment itself is paused: the queue goes on filling, decisions wait (3.4).
        schedule, coalesces: of its options.
        takes_nothing: paused, and what comes meanwhile is dropped.
        decides: whether a pass may lead to a decision.
        is_partitioned: of its schedule.
        fewest: of how many assets at least something has to be queued before its condition can hold.
    """

    id: int
    name: str
    deployment_id: UUID
    options: ConsumerOptions = field(default_factory=ConsumerOptions)
    paused: bool = False
    held: bool = False
    # What follows from the others, worked out once: the fold asks for it with each event.
    schedule: Schedule = field(init=False, repr=False, compare=False)
    coalesces: bool = field(init=False, repr=False, compare=False)
    takes_nothing: bool = field(init=False, repr=False, compare=False)
    decides: bool = field(init=False, repr=False, compare=False)
    is_partitioned: bool = field(init=False, repr=False, compare=False)
    fewest: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        schedule = self.options.schedule
        derived = {
            "schedule": schedule,
            "coalesces": self.options.coalesce,
            "takes_nothing": self.paused and self.options.while_paused == "drop",
            "decides": not (self.paused or self.held) and schedule.condition is not None,
            "is_partitioned": schedule.is_partitioned,
            "fewest": max(1, len(schedule.condition.needed_uris)) if schedule.condition is not None else 1,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def wants_key(self, partition_key: str | None) -> bool:
        """Whether an event with this key, or with none, is of this consumer's kind (3.3)."""
        return (partition_key is not None) == self.is_partitioned


class Receipt(NamedTuple):
    """What became of one event for one consumer (and target key, if partitioned) (3.5).

    A tuple, which is the quickest to make: each event makes several.

    Attributes:
        event: the event's sequence in the ledger.
        consumer: the consumer's id; none for `no_consumer`.
        target_key: the pending partition; none for plain consumers, and where no key was mapped.
        decision: what consumed it.
        by, why: who removed it, and the reason given.
        error: what the mapper said (5.4).
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


@dataclass(frozen=True, slots=True)
class Decision:
    """The record that a consumer's condition held: the events it consumes, and the run that it leads to (4.2, 4.6).

    One of the kind `backfill` is made on somebody's word, for a key, and consumes nothing (4.5).
    """

    id: UUID
    consumer: int
    deployment_id: UUID
    target_key: str | None
    events: tuple[AssetEvent, ...]
    made: datetime
    kind: DecisionKind = "asset"


def decision_id(deployment_id: UUID, target_key: str | None, event_ids: Iterable[UUID]) -> UUID:
    """The id of a decision, and the idempotency key of its run: a rebuilt ledger comes to the same one."""
    return uuid5(_NAMESPACE, "|".join((str(deployment_id), target_key or "", *sorted(map(str, event_ids)))))


def backfill_id(deployment_id: UUID, target_key: str, attempt: int) -> UUID:
    """The id of a backfill's decision for a key: the same however often it is asked for, unless `attempt` differs."""
    return uuid5(_NAMESPACE, "|".join(("backfill", str(deployment_id), target_key, str(attempt))))
