"""Fold what was recorded with a consumer as it is, and as it would be. Contract 11.6, 11.7."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush
from uuid import UUID

from assetflow.core.compare.changes import Replayed, RunDiffers
from assetflow.core.explain.what_if import why_it_waits
from assetflow.core.grouping import grouped
from assetflow.core.rules import clock, opening_hours, registry
from assetflow.core.rules.fold import Touched, pass_over, record_and_pass
from assetflow.core.rules.state import State
from assetflow.core.rules.state.changes import ConsumerClock, QueueClock, Source
from assetflow.core.rules.state.names import place_in_ledger
from assetflow.core.rules.timers import ticks_between
from assetflow.core.values.consumers import Consumer, Decision, Receipt
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.core.values.keeping import NOTHING
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.words import count, span_in_words

_INSTANT = timedelta(microseconds=1)
_NO_DATA = "Eager and Lazy flows are not replayed: what they do follows from what their runs make"


@dataclass(frozen=True)
class Beginning:
    """A consumer as it was when a replay begins.

    Attributes:
        queued: the queued events, by target key.
        clocks: what the clock knew of its queues.
        hours: its opening hours; `None` if it has none.
        running: the target keys of which a run went on.
    """

    queued: Mapping[str | None, Sequence[AssetEvent]] = field(
        default_factory=dict["str | None", "Sequence[AssetEvent]"]
    )
    clocks: Mapping[str | None, QueueClock] = field(default_factory=dict["str | None", QueueClock])
    hours: ConsumerClock | None = None
    running: Collection[str | None] = ()


@dataclass(frozen=True)
class History:
    """What was recorded for one consumer from the beginning on.

    Attributes:
        since, until: the first instant is `since` without its own moment, the last one `until`.
        recordings: in the order of the ledger.
        taken_out: what an operator took out of its queue: the ids of the events, each with the instant.
        ended: when the runs of its decisions ended, by the decision; `None` for those that go on.
        going: the ends of the runs that went on at the beginning, each with the target key.
        names: the names and aliases of the assets, as they are known.
    """

    since: datetime
    until: datetime
    beginning: Beginning = field(default_factory=Beginning)
    recordings: Sequence[Recording] = ()
    taken_out: Sequence[tuple[UUID, datetime]] = ()
    ended: Mapping[UUID, datetime | None] = field(default_factory=dict["UUID", "datetime | None"])
    going: Sequence[tuple[datetime, str | None]] = ()
    names: Sequence[tuple[str, str]] = ()
    aliases: Sequence[tuple[str, str]] = ()

    @property
    def facts(self) -> list[tuple[datetime, Recording | UUID]]:
        """The recordings, and the events that an operator took out, in the order of time."""
        latest, found = self.since, list[tuple[datetime, Recording | UUID]]()
        for each in self.recordings:
            # The ledger may have heard of an earlier one later.
            latest = max(latest, *(event.recorded or latest for event in each.events))
            found.append((latest, each))
        removed = [(at, number) for number, at in self.taken_out]
        return sorted([*found, *removed], key=lambda fact: fact[0])


class Fold:
    """The fold over the history of one consumer, in memory.

    Attributes:
        state: the state as the fold has left it.
        decisions: what was decided after the beginning, in order.
    """

    def __init__(self, consumer: Consumer, history: History, *, until: datetime | None = None) -> None:
        # With a source, though it knows nothing, no asset is compared: chapter 8 is not replayed.
        self.state = State(Source())
        self.decisions: list[Decision] = []
        self._history = history
        self._until = history.until if until is None else until
        self._keys: set[str | None] = {None}
        self._ends: list[tuple[datetime, str]] = [(at, key or "") for at, key in history.going]
        # Of runs that nobody has seen, nobody knows how long they take: as long as the last one that was seen.
        self._span = timedelta()
        alone = replace(consumer.options, data=NOTHING)
        self.consumer = replace(consumer, options=alone, paused=False, held=False)
        self._begin()

    def change(self, options: ConsumerOptions) -> None:
        """Deploy the consumer with other options at the beginning."""
        since = self._history.since
        before = self.consumer
        self.consumer = registry.change(self.state, replace(before, deployed=since), replace(options, data=NOTHING))
        opening_hours.follow(self.state, before, self.consumer, since)
        self._note(registry.pass_over_consumer(self.state, self.consumer, since))

    def run(self) -> Fold:
        """Fold the whole history, and return the fold."""
        for at, fact in self._history.facts:
            if at > self._until:
                break
            self._advance(at - _INSTANT)
            if isinstance(fact, UUID):
                keys = list(self.state.queues.target_keys(self.consumer.id))
                registry.remove_queued(self.state, self.consumer, lambda event, number=fact: event.id == number, keys)
            else:
                recorded, made = record_and_pass(self.state, fact, at)
                self._keys |= recorded.touched.get(self.consumer.id, (None, None))[1] or set()
                self._note(made)
        self._advance(self._until)
        return self

    @property
    def missed(self) -> int:
        """How many deadlines were missed after the beginning."""
        return sum(each.at > self._history.since for each in self.state.changes.missed)

    def _begin(self) -> None:
        state, consumer, beginning = self.state, self.consumer, self._history.beginning
        for name, uri in self._history.names:
            state.declare(name, uri)
        for alias, uri in self._history.aliases:
            state.names.link(alias, uri)
        state.consumers.save(consumer)
        keys = grouped((event, key) for key, events in beginning.queued.items() for event in events)
        for queued in sorted(keys, key=place_in_ledger):
            event = state.append(queued, queued.id, queued.recorded or queued.occurred)
            for each in keys[queued]:
                place = place_in_ledger(event)
                state.write(event, Receipt(place, event.uri, consumer.id, "queued", each))
        for key in beginning.running:
            state.decisions.retry_run(consumer.id, key)
        if not consumer.is_timed:
            return
        for key, known in beginning.clocks.items():
            state.clocks.set_queue(consumer.id, key, known)
        state.clocks.set_consumer(consumer.id, beginning.hours)
        # What a deadline of the present opening is due for follows from the opening.
        without = replace(consumer, options=replace(consumer.options, deadline=None))
        opening_hours.follow(state, without, consumer, self._history.since)
        self._keys |= {*beginning.queued, *beginning.clocks}
        clock.look_at(state, consumer, self._history.since)

    def _advance(self, until: datetime) -> None:
        """Let runs end and time act, up to an instant."""
        while self._ends and self._ends[0][0] <= until:
            at, key = heappop(self._ends)
            self._act(at - _INSTANT)
            self.state.decisions.end_run(self.consumer.id, key or None)
            touched: Touched = {}
            registry.touch_ended(self.state, self.consumer.id, [key or None], touched)
            self._note(pass_over(self.state, touched, at))
        self._act(until)

    def _act(self, until: datetime) -> None:
        state, consumer = self.state, self.consumer
        are_left = consumer.is_timed
        while are_left:
            due = clock.due_at(state, consumer, self._keys)
            if due is None or due > until:
                return
            made, are_left = clock.run(state, [(consumer.id, key) for key in self._keys], until)
            self._note(made)

    def _note(self, made: Iterable[Decision]) -> None:
        for each in made:
            self.decisions.append(each)
            if self.consumer.coalesces:
                self._end_later(each)

    def _end_later(self, decision: Decision) -> None:
        ended = self._history.ended.get(decision.id, decision.made + self._span)
        if ended is not None:
            self._span = ended - decision.made
            heappush(self._ends, (ended, decision.target_key or ""))


@dataclass(frozen=True)
class Change:
    """A consumer that differs: as it is, and the options that it would have; `None` if it is new, or would be gone."""

    name: str
    before: Consumer | None
    after: ConsumerOptions | None


def replay(change: Change, history: History) -> Replayed:
    """Fold what was recorded with both versions of a consumer, and tell where they differ first."""
    given = [each for each in (change.before and change.before.options, change.after) if each is not None]
    if any(each.schedule.keeping is not None for each in given):
        return Replayed(change.name, history.since, note=_NO_DATA)
    before, after = _fold(change, history, after=False), _fold(change, history, after=True)
    # What the deploy itself starts, it starts at the beginning.
    old, new = _made(before, history.since), _made(after, history.since - _INSTANT)
    first = _first_difference(old, new)
    differs = None if first is None else _told(change, history, first, old, new)
    ticks = [sum(1 for _ in _ticks(options, history)) for options in (given[0], given[-1])]
    return Replayed(
        change.name,
        history.since,
        0 if change.before is None else len(old) + ticks[0],
        0 if change.after is None else len(new) + ticks[1],
        before.missed if before is not None else 0,
        after.missed if after is not None else 0,
        differs,
    )


def _ticks(options: ConsumerOptions, history: History) -> Iterator[object]:
    timetable = options.schedule.timetable
    if timetable is not None and options.schedule.has_times:
        yield from ticks_between(timetable, history.since, history.until)


def _fold(change: Change, history: History, *, after: bool, until: datetime | None = None) -> Fold | None:
    """Return the fold of one of the two versions; `None` if there is none."""
    if (change.after if after else change.before) is None:
        return None
    before = change.before or Consumer(1, change.name, UUID(int=0))
    fold = Fold(before, history, until=until)
    if after and change.after is not None:
        fold.change(change.after)
    return fold.run()


_Runs = Mapping[tuple[datetime, str], Decision]


def _made(fold: Fold | None, since: datetime) -> _Runs:
    made = [] if fold is None else fold.decisions
    return {(each.made, each.target_key or ""): each for each in made if each.made > since}


def _first_difference(old: _Runs, new: _Runs) -> tuple[datetime, str] | None:
    for place in sorted({*old, *new}):
        ids = [{event.id for event in runs[place].events} if place in runs else None for runs in (old, new)]
        if ids[0] != ids[1]:
            return place
    return None


def _told(change: Change, history: History, place: tuple[datetime, str], old: _Runs, new: _Runs) -> RunDiffers:
    at, key = place[0], place[1] or None
    if place in old and place in new:
        taken = count(len(old[place].events), "update"), count(len(new[place].events), "update")
        return RunDiffers(at, key, "other", f"it takes {taken[1]} instead of {taken[0]}")
    gone = place in old
    words = _outside_of_within(change.after, old[place]) if gone else ""
    other = _fold(change, history, after=gone, until=at)
    if other is None:
        words = "it would be gone" if gone else "it is new"
    elif other.consumer.schedule.condition is None:
        words = "it would not run on assets any more" if gone else "now it does not run on assets"
    elif not words:
        who = "it" if gone else "now it"
        words = f"{who} {why_it_waits(other.state, other.consumer, key, at)}"
    return RunDiffers(at, key, "gone" if gone else "new", words)


def _outside_of_within(options: ConsumerOptions | None, decision: Decision) -> str:
    """Return how late the last update of a run came for a `within` of the new condition; empty if it came in time."""
    condition = None if options is None else options.schedule.condition
    spans = [gate.argument for _, gate, _ in condition.gates if gate.kind == "within"] if condition is not None else []
    last = decision.events[-1] if decision.events else None
    others = [event for event in decision.events if last is not None and event.uri != last.uri]
    if last is None or not others or not spans or last.recorded is None or others[-1].recorded is None:
        return ""
    gap = last.recorded - others[-1].recorded
    span = min(each for each in spans if isinstance(each, timedelta))
    if gap <= span:
        return ""
    hours, minutes = divmod(round(gap.total_seconds() / 60), 60)
    late = " ".join([f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes)) or span_in_words(gap)
    return f"{last.asset.name} came {late} after {others[-1].asset.name}: outside of within {span_in_words(span)}"
