"""A ledger that is rebuilt takes over what was decided before it: those decisions have their runs already.

The order in which updates are found again need not be the one in which they were recorded, and runs that made others
wait have ended long ago. So the fold would put updates together in another way and decide anew. Instead, the updates
that a run has consumed wait for each other, and belong to its decision when the last of them is there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from assetflow.core.book import Book
from assetflow.core.consumers import Consumer, Decision
from assetflow.core.events import AssetEvent, Recording
from assetflow.core.fold import Recorded, Touched, pass_over, record


@dataclass(frozen=True)
class Decided:
    """A decision of an earlier ledger, as its flow run tells it."""

    id: UUID
    deployment_id: UUID
    target_key: str | None
    events: frozenset[UUID]
    made: datetime


class Adoption:
    """The decisions to take over. Nothing changes in it when they are: what was rolled back can be folded again.

    Parameters:
        decided: no two of one deployment and key with the same update.
    """

    def __init__(self, decided: Iterable[Decided]) -> None:
        self._decided: dict[tuple[UUID, str | None], list[Decided]] = defaultdict(list)
        for each in sorted(decided, key=lambda each: each.made):
            self._decided[each.deployment_id, each.target_key].append(each)
        self._consumers: dict[int, Consumer] = {}

    def record_and_pass(self, book: Book, recording: Recording, now: datetime) -> tuple[Recorded, list[Decision]]:
        """A recording and the pass that follows it, which leaves out what waits for the rest of an earlier decision."""
        recorded = record(book, recording, now)
        decisions: list[Decision] = []
        free: Touched = {}
        for number, (consumer, keys) in recorded.touched.items():
            self._consumers[number] = consumer
            own: set[str | None] = set()
            for key in book.target_keys(number) if keys is None else keys:
                decisions += self._adopt(book, consumer, key, partly=False)
                if not self._waits(book, consumer, key):
                    own.add(key)
            free[number] = (consumer, own)
        return recorded, decisions + pass_over(book, free, now)

    def finish(self, book: Book, now: datetime) -> list[Decision]:
        """Nothing more will be found: decisions are taken over with the updates that are left of them."""
        decisions: list[Decision] = []
        for consumer in self._consumers.values():
            for key in list(book.target_keys(consumer.id)):
                decisions += self._adopt(book, consumer, key, partly=True)
        return decisions + pass_over(book, {number: (each, None) for number, each in self._consumers.items()}, now)

    def _adopt(self, book: Book, consumer: Consumer, key: str | None, *, partly: bool) -> list[Decision]:
        found: list[Decision] = []
        for each in self._decided.get((consumer.deployment_id, key), ()):
            events = _queued_of(each, book, consumer, key)
            if events and (partly or len(events) == len(each.events)):
                found.append(Decision(each.id, consumer.id, each.deployment_id, key, events, each.made))
                book.decide(found[-1])
        return found

    def _waits(self, book: Book, consumer: Consumer, key: str | None) -> bool:
        decided = self._decided.get((consumer.deployment_id, key), ())
        return any(_queued_of(each, book, consumer, key) for each in decided)


def _queued_of(decided: Decided, book: Book, consumer: Consumer, key: str | None) -> tuple[AssetEvent, ...]:
    return tuple(event for event in book.queued(consumer.id, key) if event.id in decided.events)
