"""The facts from which explanations are made; the caller has read them. And what holds a timed queue back (9.15)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.explain.status import RunRead
from assetflow.core.grouping import grouped
from assetflow.core.rules.ended_runs import FAILED
from assetflow.core.rules.evaluation import Pending
from assetflow.core.rules.state import State
from assetflow.core.rules.waits import Reason, TimedQueue, Waits, next_deadline
from assetflow.core.values.conditions import Leaf, Token
from assetflow.core.values.consumers import Consumer, Decision, Receipt
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import at, count
from assetflow.core.wire.deployments import RefusedDeployment


@dataclass(frozen=True)
class Waiting:
    """The waits of one queue, as the clock knows them.

    Attributes:
        waits: what the queue waits for, with the instant at which that is over; `None` if nobody knows it.
        expires: the events that expire, and when, if nothing else happens.
        deadline: the next deadline that the clock looks at; `None` if there is none.
        lacking: the number of updates that `min_events` still asks for.
        opens_for: the time of the timetable for which a resume now opens the schedule; `None` if there is none.
        name_of: returns the readable name of a URI.
    """

    waits: Waits
    expires: tuple[tuple[AssetEvent, datetime], ...] = ()
    deadline: datetime | None = None
    lacking: int = 0
    opens_for: datetime | None = None
    name_of: Callable[[str], str] = field(default=str, compare=False)

    @property
    def decides_now(self) -> bool:
        """True if nothing holds the queue back."""
        return not self.waits.keys() - {"at_latest"}

    @property
    def until(self) -> datetime | None:
        """The latest instant that the queue waits for, as far as it is known; `None` if no instant is known."""
        return max((moment for reason, moment in self.waits.items() if moment and reason in _WHY), default=None)

    @property
    def words(self) -> str:
        """The things that the queue waits for, as a sentence: the latest known instant comes first."""
        known = [(moment, _WHY[reason]) for reason, moment in self.waits.items() if moment and reason in _WHY]
        parts = [f"until {at(moment)} ({why})" for moment, why in sorted(known, reverse=True)]
        parts += [
            f"for {self._unknown(reason)}"
            for reason, moment in self.waits.items()
            if moment is None and reason not in ("condition", "update")
        ]
        if (latest := self.waits.get("at_latest")) is not None:
            parts.append(f"at the latest until {at(latest)} (max_wait)")
        return f"It waits {', '.join(parts)}." if parts else ""

    @property
    def notes(self) -> list[str]:
        """Sentences about the resume, about what expires, and about the next deadline."""
        found = [
            f"The update {event.id} of {self.name_of(event.uri)} expires at {at(moment)}, "
            "unless its time gate holds by then."
            for event, moment in self.expires[:5]
        ]
        if self.opens_for is not None:
            found.insert(0, f"It opens at the resume, for {at(self.opens_for)}.")
        if self.deadline is not None:
            found.append(f"Its next deadline is at {at(self.deadline)}.")
        return found

    @property
    def coming(self) -> list[tuple[datetime, str]]:
        """The instants that are to come if nothing else happens, in order, each with what happens then."""
        found = [(moment, _THEN[reason]) for reason, moment in self.waits.items() if moment and reason in _THEN]
        found += [(moment, f"An update of {self.name_of(event.uri)} expires.") for event, moment in self.expires[:5]]
        if self.deadline is not None:
            found.append((self.deadline, "Its deadline."))
        return sorted(found)

    def _unknown(self, reason: Reason) -> str:
        return count(self.lacking, "more update") + " (min_events)" if reason == "more" else _FOR[reason]


_WHY: dict[Reason, str] = {
    "opening": "its schedule opens then",
    "cooldown": "cooldown after the last decision",
    "quiet": "debounce after the newest update",
}
_THEN: dict[Reason, str] = {
    "opening": "Its schedule opens.",
    "cooldown": "The cooldown after its last decision ends.",
    "quiet": "It has been quiet for long enough (debounce).",
    "at_latest": "It waits for more updates until then at the latest (max_wait).",
}
_FOR: dict[Reason, str] = {
    "resume": "a resume",
    "run": "the end of its run (coalesce)",
    "opening": "an opening that does not come any more",
}


def waiting_of(state: State, consumer: Consumer, target_key: str | None, now: datetime) -> Waiting:
    """Return what the clock says about a queue of a timed consumer now."""
    queue = TimedQueue(state, consumer, target_key, now, recorded=True)
    lacking = max(0, (consumer.options.intake.min_events or 0) - len(queue.events))
    opens_for = None if consumer.decides or queue.hours is None or not queue.is_open else queue.hours.opened
    expires = tuple(queue.line.expiries())
    return Waiting(queue.waits(), expires, next_deadline(state, queue), lacking, opens_for, names_in(state))


@dataclass(frozen=True)
class KnownNames:
    """The present names and links; those in the schedule to explain are enough.

    Attributes:
        owners: each name with the URI that it belongs to (1.2).
        links: each alias with the URIs that are linked to it (3.2).
        readable: what people call the asset with a URI (1.2).
    """

    owners: Mapping[str, str] = field(default_factory=dict[str, str])
    links: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    readable: Mapping[str, str] = field(default_factory=dict[str, str])

    def name_of(self, uri: str) -> str:
        """Return what people call the asset with a URI."""
        return self.readable.get(uri, uri)

    def label_of(self, leaf: Leaf) -> str:
        """Return what people call the asset or the alias of a leaf."""
        kind, value = leaf.token
        uri = self.owners.get(value, "") if kind == "name" else value if kind == "uri" else ""
        return self.readable.get(uri, leaf.label)

    def tokens_of(self, uri: str) -> frozenset[Token]:
        """Return the tokens of a URI: the URI itself, its names and its aliases."""
        return frozenset(
            (
                Token("uri", uri),
                *(Token("name", name) for name, owner in self.owners.items() if owner == uri),
                *(Token("alias", alias) for alias, uris in self.links.items() if uri in uris),
            )
        )


@dataclass(frozen=True)
class QueuedEvents:
    """The queued events of a plain consumer, or of one pending partition.

    Attributes:
        events: the events in the order of the ledger. Of a long queue the oldest of each asset and key are enough.
        counts: the number of queued events of each asset, by URI; `None` if `events` has all of them.
        target_key: the key of the pending partition; `None` for a plain consumer.
        waiting: what the clock says about the queue; `None` for a consumer that is not timed.
    """

    events: Sequence[AssetEvent] = ()
    counts: Mapping[str, int] | None = None
    target_key: str | None = None
    waiting: Waiting | None = None

    @property
    def count(self) -> int:
        return len(self.events) if self.counts is None else sum(self.counts.values())


@dataclass(frozen=True)
class NotStarted:
    """A flow run that is due and has not started.

    Attributes:
        since: when it was due, or when a worker took it.
        taken: a worker has taken it.
        pool: the work pool whose workers may take it; "" for a deployment that a process serves.
    """

    since: datetime
    taken: bool = False
    pool: str = ""


@dataclass(frozen=True)
class RunFacts:
    """The outcome of a decision: its run, or why it has none. Contract 4.6.

    Attributes:
        name: the name of the run in Prefect; "" if the caller does not need it.
        undeliverable: it will have no run: Prefect refused the run, or its deployment is gone.
        error: the last error, or why it is undeliverable.
        attempts: the number of failed attempts to create the run.
        launched, ended: when the run was created and when it ended, UTC; `None` if not yet.
        state: the name of the run's final state; "" if it is not known.
        message: the message of the state in which the run failed; "" if it did not, or Prefect was not asked.
        not_started: a run that waits for a worker; `None` if it does not wait, or Prefect was not asked.
    """

    flow_run_id: UUID | None = None
    name: str = ""
    undeliverable: bool = False
    error: str = ""
    attempts: int = 0
    launched: datetime | None = None
    ended: datetime | None = None
    state: str = ""
    not_started: NotStarted | None = None
    message: str = ""

    @property
    def has_failed(self) -> bool:
        return self.state in FAILED


class DecisionBefore(NamedTuple):
    """The decision of the same consumer and key before another one.

    Attributes:
        made: when it was made.
        ended: when its run ended, UTC; `None` if it goes on.
    """

    made: datetime
    ended: datetime | None


@dataclass(frozen=True)
class DecisionFacts:
    """A decision with its consumer and its run.

    Attributes:
        decision: of very many consumed events, the oldest and the first of each asset and key are enough.
        consumer: `flow/deployment`.
        total: the number of events that it consumed; `None` if `decision` has all of them.
        reads: what the run of an Eager or Lazy consumer read.
        before: the decision before, if something waits for its run or counts from it (4.7, 9.11).
    """

    decision: Decision
    consumer: str
    run: RunFacts = field(default_factory=RunFacts)
    total: int | None = None
    reads: Sequence[RunRead] = ()
    before: DecisionBefore | None = None

    @property
    def consumed(self) -> int:
        """The number of events that it consumed."""
        return len(self.decision.events) if self.total is None else self.total

    @property
    def newest(self) -> datetime | None:
        """When the newest consumed event was recorded; `None` if not all events were read."""
        events = self.decision.events
        return events[-1].recorded if events and len(events) == self.consumed else None


@dataclass(frozen=True)
class ConsumerFacts:
    """A consumer with its queues, its last decision and its runs.

    Attributes:
        queues: one for a plain consumer, one for each pending partition of a partitioned one.
        pending_keys, queued: the number of pending target keys and of queued events; `queues` may have fewer.
        since: when the ledger first knew the consumer, UTC.
        last: its latest decision.
        running: the target keys (`None` for a plain consumer) for which a run of a decision has not ended (4.7).
        loops: the ways from its own runs back to itself, each as consumers and assets in turn, with itself at both
            ends.
        removed: when its deployment was deleted, UTC.
        refused: why its newest declaration cannot be used, so that the one before counts; `None` if it can.
        plan: what an Eager or Lazy consumer would run now; `None` for others.
        updated: the updates that its inputs had after the begin of the last decision's run, the newest first.
        newest: the newest event of each asset that it waits for, with its receipt; `None` if it has none.
    """

    consumer: Consumer
    names: KnownNames = field(default_factory=KnownNames)
    queues: Sequence[QueuedEvents] = ()
    pending_keys: int = 0
    queued: int = 0
    since: datetime | None = None
    last: DecisionFacts | None = None
    running: Collection[str | None] = ()
    loops: Sequence[Sequence[str]] = ()
    removed: datetime | None = None
    refused: RefusedDeployment | None = None
    plan: PlannedConsumer | None = None
    updated: Sequence[AssetEvent] = ()
    newest: Sequence[tuple[AssetEvent, Receipt | None]] = ()


def pending_of(events: Iterable[AssetEvent]) -> Pending:
    """Return a queue in short: URI to key to the number of events."""
    keys = grouped((event.uri, event.partition_key) for event in events)
    return {uri: Counter(found) for uri, found in keys.items()}


def first_prefix(events: Sequence[AssetEvent], holds: Callable[[Sequence[AssetEvent]], bool]) -> int | None:
    """Return how many events, from the oldest on, are needed for `holds`, or `None` if all are not enough.

    More updates never make a condition false, so a binary search finds the number.
    """
    if not events or not holds(events):
        return None
    return bisect_left(range(1, len(events) + 1), True, key=lambda length: holds(events[:length])) + 1


def names_in(state: State) -> Callable[[str], str]:
    """Return the function that returns the readable name of a URI: the first of its names, or else the URI."""
    return lambda uri: min((name for name in state.names.names_of(uri) if name != uri), default=uri)
