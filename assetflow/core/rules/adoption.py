"""Adopt the decisions that an earlier ledger made, when a ledger is rebuilt or restored from a backup.

The flow runs of those decisions exist. Folding the recordings again need not lead to the same decisions: a rebuild can
find the recordings in another order, and runs that made a consumer wait have ended meanwhile. Therefore the rebuild
reads from the flow runs which events each decision consumed. It holds these events back until all of them are queued,
and then makes the decision with its old id. Decisions of Eager and Lazy flows consume nothing: they are adopted when
everything is recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from assetflow.core.freshness.records import Asked, Target
from assetflow.core.rules import clock, opening_hours
from assetflow.core.rules.fold import Touched, pass_over
from assetflow.core.rules.keeping import adopt_kept_run, begin_other_run, start_kept_run
from assetflow.core.rules.state import State
from assetflow.core.rules.waits import set_overdue
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent


@dataclass(frozen=True)
class Decided:
    """A decision of an earlier ledger, read from the context of its flow run.

    Attributes:
        events: the ids of the events that it consumed.
        made: its instant, UTC (9.6).
        asked: what an Eager or Lazy flow was asked for; `None` for other decisions.
        began: when its run began, UTC; `None` if it did not yet.
        created: when its run was created, UTC; `None` for `made`.
        opening, by_deadline: as of a decision.
        starts: when its run was to start, UTC (9.11); `None` for `created`.
    """

    id: UUID
    deployment_id: UUID
    target_key: str | None
    events: frozenset[UUID]
    made: datetime
    asked: Asked | None = None
    began: datetime | None = None
    created: datetime | None = None
    opening: datetime | None = None
    by_deadline: bool = False
    starts: datetime | None = None

    @property
    def launched(self) -> datetime:
        """When its run was created."""
        return self.created or self.made


class Adoption:
    """The decisions to adopt. Adopting one does not change this object, so a transaction can be repeated.

    Parameters:
        decided: the decisions; two of the same deployment and key have no event in common.
    """

    def __init__(self, decided: Iterable[Decided]) -> None:
        self._decided: dict[tuple[UUID, str | None], list[Decided]] = defaultdict(list)
        # The decision to which an event belongs.
        self._owners: dict[tuple[UUID, str | None], dict[UUID, Decided]] = defaultdict(dict)
        for each in sorted(decided, key=lambda each: each.made):
            self._decided[each.deployment_id, each.target_key].append(each)
            self._owners[each.deployment_id, each.target_key] |= dict.fromkeys(each.events, each)

    @property
    def ids(self) -> list[UUID]:
        """The ids of the decisions to adopt."""
        return [each.id for decided in self._decided.values() for each in decided]

    def pass_over(
        self,
        state: State,
        touched: Touched,
        now: datetime,
        instant: datetime | None = None,
        *,
        recorded_from: datetime | None = None,
    ) -> list[Decision]:
        """Adopt decisions whose events are all queued, then make a pass over the queues without events of others.

        The passes of timed queues wait until the clock goes through their instants in order, when all is recorded.
        """
        decisions: list[Decision] = []
        free: Touched = {}
        for number, (consumer, keys) in touched.items():
            own: set[str | None] = set()
            for key in state.queues.target_keys(number) if keys is None else keys:
                decisions += self._adopt(state, consumer, key, partly=False)
                if consumer.is_timed:
                    clock.defer(state, consumer, key, recorded_from or instant or now)
                elif not self._waits(state, consumer, key):
                    own.add(key)
            free[number] = (consumer, own)
        return decisions + pass_over(state, free, now, instant, recorded_from=recorded_from)

    def finish(
        self, state: State, consumers: Iterable[Consumer], now: datetime, known: Mapping[UUID, bool] | None = None
    ) -> list[Decision]:
        """Adopt the remaining decisions with those of their events that are queued, because no others will come.

        Parameters:
            consumers: all consumers, because another process may have recorded some of the events.
            known: which of the decisions are in the ledger by now, and whether the run of each goes on: an earlier
                process may have adopted them and was killed.
        """
        known = known or {}
        everybody: Touched = {consumer.id: (consumer, None) for consumer in consumers}
        decisions: list[Decision] = []
        for consumer, _ in everybody.values():
            for key in list(state.queues.target_keys(consumer.id)):
                decisions += self._adopt(state, consumer, key, partly=True)
        of_deployment = {consumer.deployment_id: consumer for consumer, _ in everybody.values()}
        decisions += self._adopt_without_events(state, of_deployment, known)
        self._begin_runs(state, of_deployment, now, known)
        self._adopt_kept(state, of_deployment, known)
        for number, (consumer, _) in list(everybody.items()):
            if consumer.is_timed:
                clock.look_at(state, consumer, now)
                del everybody[number]
        return decisions + pass_over(state, everybody, now)

    def _adopt_without_events(
        self, state: State, consumers: Mapping[UUID, Consumer], known: Collection[UUID]
    ) -> list[Decision]:
        """Adopt the decisions of which no event is found any more: their runs exist, and cooldowns count from them."""
        adopted = {*known, *(each.id for each in state.changes.decisions)}
        found: list[Decision] = []
        for (deployment_id, _), decided in self._decided.items():
            consumer = consumers.get(deployment_id)
            if consumer is None:
                continue
            left = [each for each in decided if each.asked is None and each.id not in adopted]
            found += [_adopt(state, consumer, each, ()) for each in left]
            if consumer.is_timed:
                clock.go_on_after(state, consumer, decided[-1].target_key, decided[-1].made)
        return found

    def _begin_runs(
        self, state: State, consumers: Mapping[UUID, Consumer], now: datetime, known: Mapping[UUID, bool]
    ) -> None:
        """Let the newest run of each target go on in the data graph until its end is heard. Contract 8.6."""
        for (deployment_id, key), decided in self._decided.items():
            consumer, newest = consumers.get(deployment_id), decided[-1]
            if consumer is None or newest.asked is not None or not known.get(newest.id, True):
                continue
            if state.freshness.runs.of_flow_run(consumer.id, newest.id) is None:
                begin_other_run(state, Target(consumer.id, key), newest.id, "asset", newest.made)
                if newest.began is not None:
                    start_kept_run(state, consumer.id, newest.id, newest.began, now)

    def _adopt_kept(self, state: State, consumers: Mapping[UUID, Consumer], known: Collection[UUID]) -> None:
        """Adopt the decisions of Eager and Lazy flows. What the newest run of a target tried counts as tried (8.17)."""
        for (deployment_id, key), decided in self._decided.items():
            consumer = consumers.get(deployment_id)
            kept = [] if consumer is None else [(each, each.asked) for each in decided if each.asked is not None]
            for each, asked in ((each, asked) for each, asked in kept if each.id not in known):
                assert consumer is not None
                decision = Decision(each.id, consumer.id, deployment_id, key, (), each.made, asked.kind)
                state.decide(replace(decision, scheduled=each.launched, because=asked.because))
            if kept and consumer is not None:
                # Prefect may have created the runs in another order, but each names the decision before it.
                followed = {asked.predecessor for _, asked in kept}
                newest, asked = next((each for each in reversed(kept) if each[0].id not in followed), kept[-1])
                if newest.id not in known:
                    adopt_kept_run(state, Target(consumer.id, key), newest.id, asked, newest.made, newest.began)

    def _adopt(self, state: State, consumer: Consumer, key: str | None, *, partly: bool) -> list[Decision]:
        return [
            _adopt(state, consumer, each, tuple(events))
            for each, events in self._queued(state, consumer, key)
            if partly or len(events) == len(each.events)
        ]

    def _waits(self, state: State, consumer: Consumer, key: str | None) -> bool:
        return bool(self._queued(state, consumer, key))

    def _queued(self, state: State, consumer: Consumer, key: str | None) -> list[tuple[Decided, list[AssetEvent]]]:
        """Return the decisions of which events are queued, with these events: the oldest decision first."""
        owners = self._owners.get((consumer.deployment_id, key), {})
        found: dict[UUID, tuple[Decided, list[AssetEvent]]] = {}
        for event in state.queues.queued(consumer.id, key) if owners else ():
            if (owner := owners.get(event.id)) is not None:
                found.setdefault(owner.id, (owner, []))[1].append(event)
        return sorted(found.values(), key=lambda each: each[0].made)


def _adopt(state: State, consumer: Consumer, decided: Decided, events: tuple[AssetEvent, ...]) -> Decision:
    """Write a decision as the earlier ledger made it, with those of its events that are found."""
    decision = Decision(
        decided.id,
        consumer.id,
        decided.deployment_id,
        decided.target_key,
        events,
        decided.made,
        opening=decided.opening,
        by_deadline=decided.by_deadline,
        scheduled=decided.starts or decided.launched,
    )
    state.decide(decision)
    if consumer.is_timed:
        opening_hours.close_answered(state, consumer, decided.target_key, decided.made)
        set_overdue(state, consumer, decided.target_key, overdue=False)
    return decision
