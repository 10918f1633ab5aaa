"""The records of items, runs, targets, policies and backfills (contract chapter 8, Words)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID

from assetflow.core.partitions import PartitionMapper
from assetflow.core.values.freshness_policy import DataTime, FreshnessPolicy, State
from assetflow.core.values.keeping import Cause

Reads = Mapping[str, PartitionMapper | None]
RunKind = Literal["eager", "lazy", "backfill", "asset", "time", "manual"]
ItemState = Literal["missing", "stale", "fresh", "source", "unknown"]
RunState = Literal["completed", "failed", "crashed", "cancelled"]


class Item(NamedTuple):
    """One asset and one partition key, or an asset and no key."""

    uri: str
    key: str | None = None


class Target(NamedTuple):
    """A target key of a partitioned consumer, or the one target of a plain one."""

    consumer: int
    key: str | None = None


class Moment(NamedTuple):
    """When something happened, after which update in the ledger, and after what else of the same instant.

    Attributes:
        order: the place among the ends of runs and deploys, as the ledger recorded them; 0 for an update.
    """

    at: datetime
    place: int
    order: int = 0


@dataclass(frozen=True, slots=True)
class ItemUpdate:
    """An update of an item, or the confirmation that it is up to date (8.2).

    Attributes:
        sequence: the place of the update in the ledger; of a confirmation, that of the newest update before it.
        event: the id of the event; of a confirmation, an id of its own.
        recorded: its instant, UTC.
        consumer: who made it; `None` for an update from outside.
        pins: what was read: each input with the sequence of the newest update in the ledger when the attempt started;
            `None` if nobody said what was read, as for an update from outside.
        started: when the run that made it began, UTC.
        confirms: it is a confirmation.
        mappers: the mappers by which it was read; `None` if nobody said.
    """

    item: Item
    sequence: int
    event: UUID
    data_version: str
    recorded: datetime
    consumer: int | None = None
    pins: Mapping[str, int] | None = None
    code_version: str | None = None
    started: datetime | None = None
    confirms: bool = False
    mappers: Reads | None = None

    @property
    def moment(self) -> Moment:
        return Moment(self.recorded, self.sequence)

    @property
    def is_from_outside(self) -> bool:
        return self.consumer is None and self.pins is None


class VersionRun(NamedTuple):
    """An update of an item and the updates with the same version that followed it directly.

    Attributes:
        last: the last update with this version.
        ended: the first update with another version; `None` if there was none.
    """

    last: ItemUpdate
    ended: ItemUpdate | None


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs that a run tried, or that were waived: the versions as of a place in the ledger, and the flow (8.6).

    Attributes:
        sequence: what was there up to this place was read.
        code_versions: each output with its code version.
        reads: the inputs of the flow, each with its mapper; `None` for one that is read whole.
    """

    sequence: int
    code_versions: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    reads: Reads = field(default_factory=dict[str, "PartitionMapper | None"])


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a flow that reads or makes assets.

    Attributes:
        id: that of its decision, or its own.
        asked: when it was asked for, UTC; of a run by hand, when it was created.
        began: when it began, UTC; until its start is reported, when it was asked for (8.6).
        tried: the inputs as of its begin.
        pins: what each output is made from.
        predecessor: the decision before it for this target, if an Eager or Lazy flow was asked for (8.17).
    """

    id: UUID
    target: Target
    kind: RunKind
    asked: datetime
    began: datetime
    tried: Inputs
    pins: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, "Mapping[str, int]"])
    predecessor: UUID | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The target of a run of an Eager or Lazy flow, as its flow run keeps it for a ledger that is rebuilt (8.17).

    Attributes:
        code_versions, reads: those of the `Inputs` that the run tries.
        predecessor: the decision before it for this target; `None` for the first one.
    """

    kind: Literal["eager", "lazy"]
    because: tuple[Cause, ...]
    code_versions: Mapping[str, str | None]
    reads: Reads
    predecessor: UUID | None = None


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """The stored state of a target (8.6 to 8.8).

    Attributes:
        tried: the inputs of the run that ended last.
        waived: the inputs for which `catchup` asks for no run.
        failures: how often the inputs of `tried` have failed, one after the other.
        ended: when a run ended last.
        decision: the id of the last decision.
        verdict: the name of the last verdict on it; "" if nothing is to be done.
        retry_at: when a failed run is repeated, UTC.
    """

    tried: Inputs | None = None
    waived: Inputs | None = None
    failures: int = 0
    ended: Moment | None = None
    decision: UUID | None = None
    verdict: str = ""
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FlowRecord:
    """When the parts of a flow's declaration were deployed, for what waits for its makers (8.6).

    Attributes:
        outputs: each output with the deploy that added it.
        code: the deploy that changed the code versions last.
        reads: the deploy that changed the inputs last.
        kept: the deploy that made the flow Eager or Lazy; of any other flow, its first deploy.
        failed: when the last run began that failed for good; `None` after a good one (8.14).
        good: when the last run began that completed.
    """

    outputs: Mapping[str, Moment]
    code: Moment
    reads: Moment
    kept: Moment
    failed: datetime | None = None
    good: datetime | None = None


VerdictName = Literal[
    "run",
    "owed",
    "in_progress",
    "paused",
    "backfill",
    "history",
    "missing_input",
    "tried",
    "waived",
    "retry",
    "waits",
    "ignored",
    "not_needed",
    "no_gain",
]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a target: it runs, or something holds it back.

    Attributes:
        because: the causes that count, or the policies that pull it.
        missing: the inputs that are missing.
        waits_for: the targets that it waits for.
        at: when a failed run is repeated.
    """

    target: Target
    name: VerdictName
    because: tuple[Cause, ...] = ()
    missing: tuple[Item, ...] = ()
    waits_for: tuple[Target, ...] = ()
    at: datetime | None = None


Chain = tuple[tuple[str, timedelta], ...]
"""The flows that run one after the other for an asset, each with the time that it is expected to take (8.15)."""


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """The stored state of an asset's policy.

    Attributes:
        policy: the policy that counts.
        since: when the ledger first knew it (8.11).
        state: the state that was judged last.
        state_since: since when the asset has been in this state; `None` before it was judged.
        data_time: the data time of the asset when it was judged; `None` if it was never made.
        due: when its maker is due (8.14); `None` if it is not.
        next_change: when its state can change although nothing happens.
        chain: what has to run for the asset.
    """

    policy: FreshnessPolicy
    since: datetime
    state: State = "unknown"
    state_since: datetime | None = None
    data_time: DataTime | None = None
    due: datetime | None = None
    next_change: datetime | None = None
    chain: Chain = ()


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A change of state of a policy, which becomes one event (8.13).

    Attributes:
        at: the instant at which it changed.
        lag: how old the data was; `None` if it is not known.
        causes: why the asset is out of date.
        maker: the flow that makes the asset; `None` for a source.
    """

    uri: str
    state: State
    at: datetime
    data_time: DataTime | None
    policy: FreshnessPolicy
    lag: timedelta | None = None
    causes: tuple[Cause, ...] = ()
    maker: int | None = None


StepState = Literal["todo", "asked", "done", "failed", "removed"]

OPEN: tuple[StepState, ...] = ("todo", "asked")


@dataclass(frozen=True, slots=True)
class Backfill:
    """One backfill.

    Attributes:
        uri: the asset whose maker runs.
        down: whether the targets below run too.
        concurrency: how many targets run at most at a time; `None` for any number.
        by, why: who asked for it, and the reason given.
        stopped: since when it asks for nothing more, UTC.
        ended: when nothing of it was left, UTC.
        todo, asked, done, failed, removed: how many of its targets are in each state.
    """

    number: int
    made: datetime
    uri: str = ""
    down: bool = False
    concurrency: int | None = None
    by: str = ""
    why: str = ""
    stopped: datetime | None = None
    ended: datetime | None = None
    todo: int = 0
    asked: int = 0
    done: int = 0
    failed: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class BackfillItem:
    """A target in a backfill.

    Attributes:
        place: its place in the order of the backfill, by consumer and key.
        wave: how many targets at most run one after the other before it.
        waits: how many of the targets directly above it are not done.
        attempt: how often it ran and failed before.
    """

    place: int
    target: Target
    wave: int = 0
    waits: int = 0
    state: StepState = "todo"
    attempt: int = 0
