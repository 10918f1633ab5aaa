"""Adopt the decisions that an earlier ledger made, when a ledger is rebuilt or restored from a backup.

The flow runs of those decisions exist. Folding the recordings again need not lead to the same decisions: a rebuild can
find the recordings in another order, and runs that made a consumer wait have ended meanwhile. Therefore the rebuild
reads from the flow runs which events each decision consumed. It holds these events back until all of them are queued,
and then makes the decision with its old id. Decisions of Eager and Lazy flows consume nothing: they are adopted when
everything is recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from assetflow.core.consumers import Consumer, Decision
from assetflow.core.events import AssetEvent, Recording
from assetflow.core.freshness.records import Asked, Target
from assetflow.core.rules.fold import Recorded, Touched, pass_over, record
from assetflow.core.rules.keeping import adopt_kept_run
from assetflow.core.rules.state import State


@dataclass(frozen=True)
class Decided:
    """A decision of an earlier ledger, read from the context of its flow run.

    Attributes:
        events: the ids of the events that it consumed.
        asked: what an Eager or Lazy flow was asked for; `None` for other decisions.
        began: when its run began, UTC; `None` if it did not yet.
    """

    id: UUID
    deployment_id: UUID
    target_key: str | None
    events: frozenset[UUID]
    made: datetime
    asked: Asked | None = None
    began: datetime | None = None


class Adoption:
    """The decisions to adopt. Adopting one does not change this object, so a transaction can be repeated.

    Parameters:
        decided: the decisions; two of the same deployment and key have no event in common.
    """

    def __init__(self, decided: Iterable[Decided]) -> None:
        self._decided: dict[tuple[UUID, str | None], list[Decided]] = defaultdict(list)
        for each in sorted(decided, key=lambda each: each.made):
            self._decided[each.deployment_id, each.target_key].append(each)

    def record_and_pass(self, state: State, recording: Recording, now: datetime) -> tuple[Recorded, list[Decision]]:
        """Record a recording and make the pass that follows it."""
        recorded = record(state, recording, now)
        return recorded, self.pass_over(state, recorded.touched, now)

    def pass_over(self, state: State, touched: Touched, now: datetime) -> list[Decision]:
        """Adopt decisions whose events are all queued, then make a pass over the queues without events of others."""
        decisions: list[Decision] = []
        free: Touched = {}
        for number, (consumer, keys) in touched.items():
            own: set[str | None] = set()
            for key in state.queues.target_keys(number) if keys is None else keys:
                decisions += self._adopt(state, consumer, key, partly=False)
                if not self._waits(state, consumer, key):
                    own.add(key)
            free[number] = (consumer, own)
        return decisions + pass_over(state, free, now)

    def finish(self, state: State, consumers: Iterable[Consumer], now: datetime) -> list[Decision]:
        """Adopt the remaining decisions with those of their events that are queued, because no others will come.

        Parameters:
            consumers: all consumers, because another process may have recorded some of the events.
        """
        everybody: Touched = {consumer.id: (consumer, None) for consumer in consumers}
        decisions: list[Decision] = []
        for consumer, _ in everybody.values():
            for key in list(state.queues.target_keys(consumer.id)):
                decisions += self._adopt(state, consumer, key, partly=True)
        self._adopt_kept(state, {consumer.deployment_id: consumer for consumer, _ in everybody.values()})
        return decisions + pass_over(state, everybody, now)

    def _adopt_kept(self, state: State, consumers: Mapping[UUID, Consumer]) -> None:
        """Adopt the decisions of Eager and Lazy flows. What the newest run of a target tried counts as tried (8.17)."""
        for (deployment_id, key), decided in self._decided.items():
            consumer = consumers.get(deployment_id)
            kept = [] if consumer is None else [(each, each.asked) for each in decided if each.asked is not None]
            for each, asked in kept:
                assert consumer is not None
                decision = Decision(each.id, consumer.id, deployment_id, key, (), each.made, asked.kind)
                state.decide(replace(decision, scheduled=each.made, because=asked.because))
            if kept and consumer is not None:
                # Prefect may have created the runs in another order, but each names the decision before it.
                followed = {asked.predecessor for _, asked in kept}
                newest, asked = next((each for each in reversed(kept) if each[0].id not in followed), kept[-1])
                adopt_kept_run(state, Target(consumer.id, key), newest.id, asked, newest.made, newest.began)

    def _adopt(self, state: State, consumer: Consumer, key: str | None, *, partly: bool) -> list[Decision]:
        found: list[Decision] = []
        for each in self._decided.get((consumer.deployment_id, key), ()):
            events = _queued_of(each, state, consumer, key)
            if events and (partly or len(events) == len(each.events)):
                found.append(
                    Decision(each.id, consumer.id, each.deployment_id, key, events, each.made, scheduled=each.made)
                )
                state.decide(found[-1])
        return found

    def _waits(self, state: State, consumer: Consumer, key: str | None) -> bool:
        decided = self._decided.get((consumer.deployment_id, key), ())
        return any(_queued_of(each, state, consumer, key) for each in decided)


def _queued_of(decided: Decided, state: State, consumer: Consumer, key: str | None) -> tuple[AssetEvent, ...]:
    return tuple(event for event in state.queues.queued(consumer.id, key) if event.id in decided.events)
