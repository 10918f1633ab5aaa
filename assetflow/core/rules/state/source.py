"""The source: the port through which a state reads what it does not remember. The ledger answers from its tables."""

# The methods here answer for an empty source.
# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from assetflow.core.condition_tree import Token
from assetflow.core.freshness.state import FreshnessSource
from assetflow.core.rules.state.changes import QueueKey
from assetflow.core.values.consumers import Consumer, Receipt
from assetflow.core.values.events import AssetEvent, Content

if TYPE_CHECKING:
    from assetflow.core.rules.state.clocks import ConsumerClock, QueueClock

"""The content of an event: URI, key and extra."""


class StateSource:
    """The state that was committed before the unit of work began.

    Each method answers for many keys at once, and leaves out what does not exist. This base class is an empty source:
    for a state that has it, everything that exists is in the changes.
    """

    def freshness(self) -> FreshnessSource | None:
        """Return the source of what chapter 8 remembers; `None` for a state that holds it in memory."""
        return None

    def owners(self, names: Collection[str]) -> Iterable[tuple[str, str]]:
        """Return those of these names that belong to a URI, each with the URI."""
        return ()

    def names(self, uris: Collection[str]) -> Iterable[tuple[str, str]]:
        """Return pairs of a URI and one of its names."""
        return ()

    def aliases(self, uris: Collection[str]) -> Iterable[tuple[str, str]]:
        """Return pairs of a URI and an alias that it is linked to."""
        return ()

    def descriptions(self, uris: Collection[str]) -> Iterable[tuple[str, str, Mapping[str, object]]]:
        """Return those of these URIs that are assets, each with its group and extra."""
        return ()

    def recorded(self, ids: Collection[UUID]) -> Iterable[tuple[UUID, Content]]:
        """Return those of these event ids that are recorded, each with the event's content."""
        return ()

    def delivered(self, recordings: Collection[UUID]) -> Iterable[tuple[UUID, str, str | None, datetime]]:
        """Return the recorded events of these recordings in order: recording, URI, key, and when each occurred."""
        return ()

    def events(self, sequences: Collection[int]) -> Iterable[AssetEvent]:
        """Return these events, in any order."""
        return ()

    def newest_of(self, uri: str, key: str | None) -> AssetEvent | None:
        """Return the newest event of an asset and a key, or `None` if there is none."""
        return None

    def places(self, ids: Collection[UUID]) -> Iterable[tuple[UUID, int]]:
        """Return those of these event ids that are recorded, each with the event's sequence."""
        return ()

    def place_at(self, uri: str, instant: datetime) -> int:
        """Return the sequence of the newest event of an asset up to an instant, 0 if there was none."""
        return 0

    def first_after(self, uri: str, place: int) -> int | None:
        """Return the sequence of the first event of an asset after a place in the ledger; `None` if none came."""
        return None

    def is_declared(self, uri: str, besides: UUID) -> bool:
        """Return True if a deployment other than `besides` declares that it makes or reads this URI."""
        return False

    def is_made(self, tokens: Collection[Token]) -> bool:
        """Return True if a deployed flow makes the asset with these tokens."""
        return False

    def ends_of_recordings(self, sequences: Collection[int]) -> Iterable[tuple[UUID, int]]:
        """Return each recording of these events with the last of them."""
        return ()

    def wanting(self, tokens: Collection[Token]) -> Iterable[tuple[Token, int]]:
        """Return pairs of a token and the id of a consumer whose schedule has it."""
        return ()

    def consumers(self, numbers: Collection[int]) -> Iterable[Consumer]:
        """Return the consumers with these ids, without those that were removed."""
        return ()

    def live(self) -> Iterable[int]:
        """Return the ids of all consumers that were not removed."""
        return ()

    def target_keys(self, consumer: int) -> Iterable[str | None]:
        """Return the target keys under which events are queued for a consumer."""
        return ()

    def counts(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, str, str | None, int]]:
        """Return the counts of these queues: queue, URI, key, number of events. Other queues may be in the answer."""
        return ()

    def queued(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, int]]:
        """Return pairs of a queue and the sequence of an event in it. Other queues may be in the answer."""
        return ()

    def receipts(self, consumer: int, event: int) -> Iterable[Receipt]:
        """Return the receipts of an event for a consumer."""
        return ()

    def busy(self, consumers: Collection[int]) -> Iterable[QueueKey]:
        """Return pairs of a consumer and a target key for which a run has not ended."""
        return ()

    def consumer_clocks(self, consumers: Collection[int]) -> Iterable[tuple[int, ConsumerClock]]:
        """Return the opening hours of those of these consumers that have some."""
        return ()

    def queue_clocks(self, queues: Collection[QueueKey]) -> Iterable[tuple[QueueKey, QueueClock]]:
        """Return what the clock remembers of these queues. The answer may have other queues too."""
        return ()

    def last_decisions(self, consumer: int) -> Iterable[tuple[QueueKey, datetime, datetime]]:
        """Return the last decision on each queue of a consumer: queue, instant, and when its run was to start."""
        return ()
