"""What an explanation starts from: values that the caller has read, and nothing that has to be asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from assetflow.core.conditions import Token
from assetflow.core.consumers import Consumer, Decision
from assetflow.core.events import AssetEvent


@dataclass(frozen=True)
class Names:
    """Names and links as they are known now; those that the schedule concerned speaks of are enough.

    Attributes:
        owners: name to the URI that it belongs to (1.2).
        links: alias to the URIs that are linked to it (3.2).
    """

    owners: Mapping[str, str] = field(default_factory=dict[str, str])
    links: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])

    def tokens_of(self, uri: str) -> frozenset[Token]:
        """The tokens under which a schedule may want this URI."""
        return frozenset(
            (
                Token("uri", uri),
                *(Token("name", name) for name, owner in self.owners.items() if owner == uri),
                *(Token("alias", alias) for alias, uris in self.links.items() if uri in uris),
            )
        )


@dataclass(frozen=True)
class QueuedEvents:
    """What is queued for a consumer, or for one of its target keys.

    Attributes:
        events: in ledger order. Of a long queue the oldest events of each asset and key are enough.
        counts: how many there are of each asset, by URI; none if `events` are all of them.
        target_key: the pending partition; none for a plain consumer.
    """

    events: Sequence[AssetEvent] = ()
    counts: Mapping[str, int] | None = None
    target_key: str | None = None

    @property
    def count(self) -> int:
        return len(self.events) if self.counts is None else sum(self.counts.values())


@dataclass(frozen=True)
class RunFacts:
    """What became of a decision: its run, or why it has none (4.6).

    Attributes:
        undeliverable: whether Prefect refused the run for good, or its deployment is gone; `error` says what it said.
        state: the name of the run's final state, as far as it is known.
    """

    flow_run_id: UUID | None = None
    undeliverable: bool = False
    error: str = ""
    attempts: int = 0
    launched: datetime | None = None
    ended: datetime | None = None
    state: str = ""


@dataclass(frozen=True)
class DecisionFacts:
    """A decision, whose it is, and what became of it.

    Attributes:
        decision: of very many events, the oldest ones and the first of each asset and key are enough.
        total: how many events it consumed; none if the decision has all of them.
    """

    decision: Decision
    consumer: str
    run: RunFacts = field(default_factory=RunFacts)
    total: int | None = None

    @property
    def consumed(self) -> int:
        """How many events it consumed."""
        return len(self.decision.events) if self.total is None else self.total


@dataclass(frozen=True)
class ConsumerFacts:
    """A consumer and what surrounds it.

    Attributes:
        queues: one for a plain consumer, one for each pending partition of a partitioned one.
        pending_keys, queued: how many target keys and events are queued; none if `queues` are all.
        since: when the ledger began to know the consumer.
        last: its latest decision.
        running: the target keys (none for a plain consumer) for which a run of a decision has not ended (4.7).
        loops: ways from its own runs back to itself, as names of consumers and assets in turn, itself at both ends.
        removed: when its deployment went away.
    """

    consumer: Consumer
    names: Names = field(default_factory=Names)
    queues: Sequence[QueuedEvents] = ()
    pending_keys: int | None = None
    queued: int | None = None
    since: datetime | None = None
    last: DecisionFacts | None = None
    running: Collection[str | None] = ()
    loops: Sequence[Sequence[str]] = ()
    removed: datetime | None = None

    @property
    def queue_size(self) -> int:
        """How many events are queued."""
        return sum(queue.count for queue in self.queues) if self.queued is None else self.queued

    @property
    def partition_count(self) -> int:
        """How many target keys have something queued."""
        return len(self.queues) if self.pending_keys is None else self.pending_keys


def pending_of(events: Iterable[AssetEvent]) -> dict[str, list[str | None]]:
    """URI to the different keys of its events."""
    found: dict[str, dict[str | None, None]] = {}
    for event in events:
        found.setdefault(event.uri, {})[event.partition_key] = None
    return {uri: list(keys) for uri, keys in found.items()}
