"""What the readers take and return: filters, and the core's values with what the ledger adds to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from assetflow.core.rules.ended_runs import Named, run_name
from assetflow.core.rules.timers import Timer
from assetflow.core.shapes import HIDDEN, As, TextOrNull, called, shape
from assetflow.core.values.addresses import redact
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, Decision, DecisionKind, Receipt
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.keeping import Cause, ShownCause
from assetflow.core.values.triggers import Trigger

# The columns to sort by, each with whether it descends.
Order = Sequence[tuple[str, bool]]

RedactedExtra = Annotated[Mapping[str, object], As(dict[str, Any], redact)]
"""An extra, in JSON without the values that look like secrets."""
DecisionStatus = Literal["waiting", "launched", "ended", "undeliverable"]


@shape
class AssetRecord:
    """An asset. Its id never changes; group and extra are as declared last."""

    id: int
    uri: str
    names: Sequence[str]
    group: TextOrNull
    extra: RedactedExtra
    aliases: Sequence[str]
    first_seen: datetime

    @property
    def tokens(self) -> Sequence[Token]:
        """What schedules and declarations name it by."""
        names = (Token("name", name) for name in self.names)
        return [Token("uri", self.uri), *names, *(Token("alias", alias) for alias in self.aliases)]


@dataclass(frozen=True)
class Activity:
    """How many events an asset has, and when the newest one occurred."""

    events: int
    last: datetime


@dataclass(frozen=True)
class ConsumerFilter:
    """Which consumers to list. An attribute that is `None` or empty does not matter. Contract 3.4.

    Attributes:
        search: the name contains this text, in any case.
        paused: whether its automation is switched off.
        held: whether its deployment is paused.
        active: whether it is neither paused nor held, so that updates and times start its runs.
        waiting: whether something is queued for it.
        failed: whether its last run failed, whoever started it, or its latest decision could not be delivered.
    """

    search: str = ""
    paused: bool | None = None
    held: bool | None = None
    active: bool | None = None
    waiting: bool | None = None
    failed: bool | None = None


ConsumerOrder = Literal["name", "-name", "decided", "-decided", "queued", "-queued"]
"""The order of a list of consumers: by name, the latest decision first, or the longest queue first; `-` reverses it."""


@dataclass(frozen=True)
class EventFilter:
    """Which events to read. An attribute that is `None` or empty does not matter.

    Attributes:
        uri, alias: the event is of this asset; it came through this alias.
        partition_key, flow_run_id: it has this key; this flow run made it.
        consumer: it has a receipt for the consumer with this id.
        source: a run of this deployment made it, `flow.deployment`, or of this flow without a deployment.
        task: this task, or this task run, made it.
        name, name_prefix: the name under which the asset was recorded contains, or begins with, one of these texts.
        since, after: it occurred at this time or later; later than this time. UTC.
        until, before: it occurred at this time or earlier; earlier than this time. UTC.
        from_sequence, to_sequence: its sequence is at least, at most this.
    """

    uri: str | None = None
    alias: str | None = None
    partition_key: str | None = None
    flow_run_id: UUID | None = None
    consumer: int | None = None
    source: str | None = None
    task: str | None = None
    name: Sequence[str] = ()
    name_prefix: Sequence[str] = ()
    since: datetime | None = None
    after: datetime | None = None
    until: datetime | None = None
    before: datetime | None = None
    from_sequence: int | None = None
    to_sequence: int | None = None


@shape
class RefusedRecord:
    """Something that was sent as an event and breaks a rule. Contract 2.6."""

    number: int = field(metadata=HIDDEN)
    id: UUID
    payload: Annotated[object, As(Any, redact)]
    """It, without the values that look like secrets."""
    reason: str = field(metadata=called("error"))
    rule: str | None
    source: str
    at: datetime


@dataclass(frozen=True)
class ConsumerRecord:
    """A consumer with what the registry compares; `declaration` is the stored text."""

    consumer: Consumer
    flow_id: UUID | None
    declaration: str
    automation_id: UUID | None
    since: datetime
    removed_at: datetime | None


@dataclass(frozen=True)
class TimerRecord:
    """The timer of a consumer, which may have been removed since.

    Attributes:
        inherited: what the runs scheduled in advance took over from their deployment.
    """

    consumer: int
    name: str
    deployment_id: UUID
    timer: Timer
    inherited: str = ""


@dataclass(frozen=True)
class ReceiptRecord:
    """A receipt, the name of its consumer (`None` for `no_consumer`), and when it was written."""

    receipt: Receipt
    consumer_name: str | None
    at: datetime


def _shown(causes: Iterable[Cause]) -> list[ShownCause]:
    return [cause.shown() for cause in causes]


@shape
class DecisionRecord:
    """A decision and what became of it. Numbers count up in the order in which decisions are made."""

    number: int
    id: UUID
    consumer: int = field(metadata=HIDDEN)
    consumer_name: str = field(metadata=called("consumer"))
    automation_id: UUID | None = field(metadata=HIDDEN)
    deployment_id: UUID
    target_key: str | None
    made: datetime
    """The instant of the decision (9.6)."""
    kind: DecisionKind
    status: DecisionStatus
    flow_run_id: UUID | None
    launched: datetime | None
    ended: datetime | None
    attempts: int
    error: TextOrNull
    run_state: TextOrNull
    """The state in which the run ended, as Prefect names it."""
    opening: datetime | None
    """The opening that its run bears as its scheduled time (9.7)."""
    by_deadline: bool
    """A deadline was the reason (9.8)."""
    decided: datetime
    """When the ledger made it: later than `made` if no evaluator was running then."""
    scheduled: datetime | None
    """When its run is to start, if decisions were made late; null for at once (9.11)."""
    because: Annotated[tuple[Cause, ...], As(list[ShownCause], _shown)] = field(metadata=called("causes"))
    """Why an Eager flow asked for the run (8.5)."""

    def with_events(self, events: tuple[AssetEvent, ...]) -> Decision:
        """Return the decision that these events belong to."""
        of = (self.id, self.consumer, self.deployment_id, self.target_key)
        how = (self.opening, self.by_deadline, self.scheduled, self.because)
        return Decision(*of, events, self.made, self.kind, *how)

    def run_name(self, consumed: Iterable[Named]) -> str:
        """Return the name of its flow run in Prefect.

        Parameters:
            consumed: the assets of the consumed events, in the order of their first event.
        """
        return run_name(self.id, self.target_key, consumed, self.because, self.consumer_name)


@dataclass(frozen=True)
class KeyDecisions:
    """The decisions of a consumer for one target key.

    Attributes:
        latest: the id of the latest decision, whatever its kind.
        state: the last state of its run as Prefect names it; "Running" or "Waiting" until the run has ended,
            "Undeliverable" if it has no run.
        backfills: the number of decisions that backfills made for the key.
    """

    latest: UUID
    state: str
    flow_run_id: UUID | None
    made: datetime
    backfills: int = 0

    @property
    def is_done(self) -> bool:
        return self.state == "Completed"

    @property
    def is_open(self) -> bool:
        return self.state in ("Running", "Waiting")


@dataclass(frozen=True)
class DeclaredEdge:
    """A deployment's declaration that it produces or reads an asset, a name or an alias."""

    deployment_id: UUID
    name: str
    direction: Literal["produces", "reads"]
    kind: Literal["uri", "name", "alias"]
    value: str


def _in_words(trigger: Trigger) -> str:
    return trigger.describe()


def _uris(assets: Iterable[Asset]) -> list[str]:
    return [asset.uri for asset in assets]


@shape
class WatcherRecord:
    """A watcher that deployments declare."""

    name: str
    trigger: Annotated[Trigger, As(str, _in_words)] = field(metadata=called("watches"))
    """The trigger in words, without a password."""
    assets: Annotated[tuple[Asset, ...], As(list[str], _uris)]
    """The URIs of the assets that it updates."""
    begun: bool = field(metadata=HIDDEN)
    """False if a watcher with a cursor has not looked yet."""
    paused: bool = field(metadata=HIDDEN)
    state: Literal["new", "watching", "failing", "paused"]
    """`paused`, or whether it watches or fails, as the process that watches says; `new` until it was started once."""
    error: TextOrNull
    """Why it fails."""
    since: datetime
    """Since when it watches or fails."""
    last_update: datetime | None
    """When it recorded its last update; null if there was none."""
    updates: int
    """How many messages or files became updates."""
    filtered: int
    """Messages that its filter did not want (10.5)."""
    refused: int
    """Messages and files that cannot be updates (10.2)."""
    lag: int | None
    """How much waits at its source, if the source tells."""


@dataclass(frozen=True)
class WatchingStatus:
    """How the watchers of a ledger are.

    Attributes:
        watchers: their number, without paused ones.
        failing: those that fail, by name, with the reason.
        alive: True if a process runs them.
        last_sign: the last sign of life of such a process; `None` after an orderly stop.
    """

    watchers: int
    failing: Mapping[str, str]
    alive: bool
    last_sign: datetime | None


NO_WATCHERS = WatchingStatus(0, {}, False, None)


@shape
class LedgerCounts:
    """The ledger in numbers; `oldest_waiting` is when the oldest decision that waits for its run was made."""

    assets: int
    consumers: int
    last_event: int
    last_decision: int
    waiting: int
    running: int
    undeliverable: int
    refused: int
    oldest_waiting: datetime | None
