"""What is remembered of targets, runs, policies and backfills."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import merge
from uuid import UUID

from assetflow.core.freshness.records import (
    OPEN,
    Backfill,
    BackfillItem,
    Inputs,
    PolicyChange,
    PolicyRecord,
    Run,
    RunState,
    StepState,
    Target,
    TargetRecord,
)
from assetflow.core.freshness.state.source import REMEMBERED, Alarms, FreshnessChanges, FreshnessSource
from assetflow.core.grouping import grouped
from assetflow.core.kept import Mirror
from assetflow.core.values.freshness_policy import DataTime, FreshnessPolicy, State


class Targets:
    """The records of targets, and an index by verdict."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._source = source
        self._changes = changes
        self._records = Mirror[Target, TargetRecord](source.records, TargetRecord())
        self._retries = Alarms[Target]()
        self._by_verdict: dict[str, dict[int, dict[Target, None]]] = {}
        self._waiting = Mirror[int, Sequence[Target]](self._read_waiting, ())

    def load(self, targets: Iterable[Target]) -> None:
        """Read the records of these targets, unless they are known."""
        self._records.load(targets)

    def find(self, target: Target) -> TargetRecord:
        """Return the record of a target."""
        return self._records[target]

    def save(self, target: Target, record: TargetRecord) -> None:
        """Write the record of a target."""
        before = self.find(target)
        if before == record:
            return
        self._records[target] = self._changes.targets[target] = record
        if before.retry_at != record.retry_at:
            self.wait_for_retry(target, record.retry_at)
        if before.verdict != record.verdict:
            self._by_verdict.get(before.verdict, {}).get(target.consumer, {}).pop(target, None)
            if record.verdict:
                self._by_verdict.setdefault(record.verdict, {}).setdefault(target.consumer, {})[target] = None

    def load_waiting(self, consumers: Iterable[int]) -> None:
        """Read which targets of these consumers wait for others, unless it is known."""
        self._waiting.load(consumers)

    def waiting(self, consumer: int) -> Collection[Target]:
        """Return the targets of a consumer that wait for others."""
        own = self._by_verdict.get("waits", {}).get(consumer, {})
        stored = (each for each in self._waiting[consumer] if each not in self._changes.targets)
        return dict.fromkeys([*own, *stored])

    def with_verdict(self, verdict: str, consumer: int, most: int | None = None) -> Collection[Target]:
        """Return the targets of a consumer that have this verdict.

        Parameters:
            most: at least that many, if there are; all by default.
        """
        own = self._by_verdict.get(verdict, {}).get(consumer, {})
        stored = self._source.with_verdict(verdict, consumer, most)
        return dict.fromkeys([*own, *(each for each in stored if each not in self._changes.targets)])

    def verdicts(self, consumer: int, is_known: Callable[[Target], bool]) -> Mapping[str, int]:
        """Return the verdicts on the targets of a consumer, each with the number of targets.

        Parameters:
            is_known: returns whether there is a target; a run by hand may have a key of its own.
        """
        stored = self._source.verdicts(consumer)
        if not any(target.consumer == consumer for target in self._changes.targets):
            return stored
        names = {*stored, *self._by_verdict}
        return {name: sum(map(is_known, self.with_verdict(name, consumer))) for name in sorted(names)}

    def consumers_with(self, verdict: str) -> Collection[int]:
        """Return the consumers that have targets with this verdict."""
        own = (number for number, targets in self._by_verdict.get(verdict, {}).items() if targets)
        return dict.fromkeys([*own, *self._source.consumers_with(verdict)])

    def set_aside(self, consumer: int, but: Set[str], now: datetime) -> None:
        """Let the clock judge the targets of a consumer later, except some keys; until then, they are "owed"."""
        self._changes.set_aside[consumer] = but, now

    def not_set_aside(self, consumer: int) -> Set[str] | None:
        """Return the keys of a consumer beside those that this unit of work set aside; `None` if it did not."""
        return self._changes.set_aside.get(consumer, (None, None))[0]

    def take_due(self, until: datetime, most: int | None = None) -> list[Target]:
        """Return targets to look at by a moment, each once: their failed runs are repeated, or they were set aside.

        Parameters:
            most: how many to look at in a unit of work; all by default.
        """
        looks = self._changes.looks
        stored = (
            [each for each in self._source.due_targets(until, most) if each not in looks]
            if most is None or len(looks) < most
            else []
        )
        found = dict.fromkeys([*self._retries.take(until), *stored])
        looks |= dict.fromkeys(found)
        return [*found]

    def wait_for_retry(self, target: Target, moment: datetime | None) -> None:
        """Look at a target again when its failed run is repeated, although it was looked at now; `None` for never."""
        self._retries.set(target, moment)
        self._changes.looks[target] = moment

    def next_due(self) -> datetime | None:
        """Return when the next target has to be looked at."""
        found = (self._retries.next(), self._source.next_due_target())
        return min((moment for moment in found if moment is not None), default=None)

    def _read_waiting(self, consumers: Collection[int]) -> Iterable[tuple[int, Sequence[Target]]]:
        return grouped((target.consumer, target) for target in self._source.waiting(consumers)).items()


class Runs:
    """The open runs by consumer, in the order in which they began."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._source = source
        self._changes = changes
        self._open = Mirror[int, dict[UUID, Run]](self._read, {})
        self._busy: Counter[Target] = Counter()
        self._durations: dict[int, deque[timedelta]] = {}

    def load(self, consumers: Iterable[int]) -> None:
        """Read the open runs of these consumers, unless they are known."""
        self._open.load(consumers)

    def of(self, consumer: int) -> Collection[Run]:
        """Return the open runs of a consumer."""
        return self._open[consumer].values()

    def of_target(self, target: Target) -> Sequence[Run]:
        """Return the open runs of a target."""
        return [run for run in self._open[target.consumer].values() if run.target == target]

    def of_flow_run(self, consumer: int, flow_run: UUID) -> Run | None:
        """Return the run of a consumer that Prefect knows by an id, also after its end; `None` if it is not known."""
        known = self._open[consumer]
        found = known.get(flow_run) or self._source.run_of(flow_run)
        # This unit of work may know more of an open run than the source.
        return None if found is None else known.get(found.id, found)

    def is_busy(self, target: Target) -> bool:
        """Return True while a target runs (8.6)."""
        self.load([target.consumer])
        return self._busy[target] > 0

    def begin(self, run: Run) -> None:
        """Remember a run that was asked for or started by hand."""
        known = self._open[run.target.consumer]
        if run.id not in known:
            self._busy[run.target] += 1
        known[run.id] = self._changes.begun[run.id] = run

    def began(self, run: Run, at: datetime, tried: Inputs) -> Run:
        """Remember that a run began later than it was asked for, and read what is there then."""
        pins = {output: dict.fromkeys(reads, tried.sequence) for output, reads in run.pins.items()}
        begun = replace(run, began=at, tried=tried, pins=pins)
        self.begin(begun)
        return begun

    def end(self, run: Run, state: RunState, at: datetime) -> None:
        """Remember that a run ended, and how long it took if it completed."""
        if self._open[run.target.consumer].pop(run.id, None) is not None:
            self._busy[run.target] -= 1
        self._changes.ended[run.id] = (run, state, at)
        if state == "completed" and run.kind != "manual":
            self.durations(run.target.consumer).append(at - run.asked)

    def durations(self, consumer: int) -> deque[timedelta]:
        """Return how long the last completed runs of a consumer took, the oldest first (8.15)."""
        if consumer not in self._durations:
            self._durations[consumer] = deque(self._source.durations(consumer), REMEMBERED)
        return self._durations[consumer]

    def forget(self, consumer: int) -> None:
        """Forget the runs of a consumer that was removed."""
        for run in self._open.pop(consumer, {}).values():
            del self._busy[run.target]
        self._durations.pop(consumer, None)

    def _read(self, consumers: Collection[int]) -> Iterable[tuple[int, dict[UUID, Run]]]:
        found: dict[int, dict[UUID, Run]] = {number: {} for number in consumers}
        for run in self._source.runs(consumers):
            found[run.target.consumer][run.id] = run
            self._busy[run.target] += 1
        return found.items()


class Policies:
    """The policies by the URI of their asset: those of the source, and those of this unit of work."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._source = source
        self._changes = changes
        self._records = Mirror[str, PolicyRecord].one_by_one(source.policy)
        self._touched: dict[str, dict[datetime, None]] = {}
        self._due, self._changing = Alarms[str](), Alarms[str]()

    def find(self, uri: str) -> PolicyRecord | None:
        """Return what is remembered of the policy of an asset; `None` if it has none."""
        return self._records[uri]

    def all(self) -> Mapping[str, PolicyRecord]:
        """Return all policies by URI."""
        found = dict(self._source.policies()) | self._records
        return {uri: record for uri, record in found.items() if record is not None}

    def take_due(self, until: datetime) -> list[str]:
        """Return the assets whose makers are due up to a moment, each once."""
        stored = (uri for uri in self._source.due(until) if uri not in self._changes.policies)
        return [*dict.fromkeys([*self._due.take(until), *stored])]

    def touch(self, uri: str, at: datetime) -> None:
        """Remember that something happened at an instant after which the state of a policy has to be judged."""
        self._touched.setdefault(uri, {})[at] = None
        self._changes.touched[uri, at] = None

    def touches(self, until: datetime) -> list[tuple[str, datetime]]:
        """Return the assets to which something happened up to a moment that is not judged yet, with its instants."""
        return [*self._source.touched(until), *self._own_touches(until)]

    def take(self, until: datetime) -> Mapping[str, list[datetime]]:
        """Return the assets whose policies have to be judged, each with the instants at which something happened."""
        found: dict[str, dict[datetime, None]] = {uri: {} for uri in self._changing.take(until)}
        found |= {uri: {} for uri in self._source.changing(until) if uri not in self._changes.policies}
        for uri, at in self.touches(until):
            found.setdefault(uri, {})[at] = None
        for uri, at in self._own_touches(until):
            del self._touched[uri][at]
            self._changes.touched.pop((uri, at), None)
        self._changes.judged = until
        return {uri: sorted(moments) for uri, moments in found.items()}

    def _own_touches(self, until: datetime) -> list[tuple[str, datetime]]:
        return [(uri, at) for uri, moments in self._touched.items() for at in moments if at <= until]

    def next_look(self) -> datetime | None:
        """Return the next instant at which a maker is due or a state can change."""
        moments = (self._due.next(), self._changing.next(), self._source.next_look())
        return min((moment for moment in moments if moment is not None), default=None)

    def save(self, uri: str, record: PolicyRecord | None) -> None:
        """Write the record of a policy; `None` for one that has ended."""
        if self.find(uri) != record:
            self._records[uri] = self._changes.policies[uri] = record
        self._due.set(uri, None if record is None else record.due)
        self._changing.set(uri, None if record is None else record.next_change)

    def declare(self, uri: str, policy: FreshnessPolicy | None, since: datetime) -> None:
        """Start, change or end a policy; an unchanged one keeps its time, and the asset its state until it is judged.

        Parameters:
            since: when a new one begins.
        """
        known = self.find(uri)
        if policy is None:
            self.save(uri, None)
        elif known is None or known.policy != policy:
            state, state_since = ("unknown", None) if known is None else (known.state, known.state_since)
            self.save(uri, PolicyRecord(policy, since, state, state_since))

    def report(self, changes: Iterable[PolicyChange]) -> None:
        """Write the changes of states that become events, in the order of their instants."""
        self._changes.policy_changes += sorted(changes, key=lambda change: (change.at, change.uri))


def judged(record: PolicyRecord, state: State, at: datetime, data_time: DataTime | None) -> PolicyRecord:
    """Return what is remembered of a policy after it was judged."""
    since = record.state_since if state == record.state and record.state_since is not None else at
    return replace(record, state=state, state_since=since, data_time=data_time)


def is_reported(before: State, after: State) -> bool:
    """Return True if a change of state makes an event: `pass` does only after `warn` or `fail` (8.13)."""
    return before != after and (after in ("warn", "fail") or (after == "pass" and before in ("warn", "fail")))


class Backfills:
    """The open backfills, in order, and their targets."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._source = source
        self._changes = changes
        self._live: dict[int, Backfill] | None = None
        self._over: dict[int, Backfill] = {}
        self._steps: dict[int, dict[int, BackfillItem]] = {}
        self._places: dict[tuple[int, Target], int | None] = {}
        self._below: dict[int, dict[int, list[int]]] = {}

    def live(self) -> Collection[Backfill]:
        """Return the open backfills, also those that were stopped, in order."""
        return list(self._known().values())

    def of_target(self, target: Target) -> Collection[Backfill]:
        """Return the backfills of which a target is part, also those that are over, in order."""
        known = {each.number: each for each in self._source.backfills_of(target)} | self._over | self._known()
        return [known[number] for number in sorted(known) if self.find(number, target) is not None]

    def add(self, backfill: Backfill, steps: Iterable[BackfillItem], edges: Iterable[tuple[int, int]]) -> None:
        """Add a backfill.

        Parameters:
            edges: pairs of places: the lower one waits for the upper one.
        """
        self.set(backfill)
        for step in steps:
            self._keep(backfill.number, step)
            self._changes.steps[backfill.number, step.place] = step
        for above, below in edges:
            self._below.setdefault(backfill.number, {}).setdefault(above, []).append(below)
            self._changes.edges.append((backfill.number, above, below))

    def set(self, backfill: Backfill) -> None:
        """Write a backfill that begins, is stopped or resumed, or ends."""
        known = self._known()
        known[backfill.number] = self._changes.backfills[backfill.number] = backfill
        if backfill.ended is not None:
            self._over[backfill.number] = known.pop(backfill.number)

    def find(self, number: int, target: Target) -> BackfillItem | None:
        """Return the target's step in a backfill, or `None` if it is not part of it."""
        if (number, target) not in self._places:
            step = self._source.step(number, target)
            self._places[number, target] = None if step is None else self._keep(number, step).place
        place = self._places[number, target]
        return None if place is None else self._steps[number][place]

    def has(self, target: Target) -> bool:
        """Return True if a target waits or runs in a backfill that was not stopped."""
        running = (each.number for each in self.live() if each.stopped is None)
        steps = (self.find(number, target) for number in running)
        return any(step is not None and step.state in OPEN for step in steps)

    def ready(self, number: int) -> Iterator[BackfillItem]:
        """Yield the targets of a backfill that wait for nothing above them any more, in order."""
        known = self._steps.setdefault(number, {})
        own = sorted((step for step in known.values() if step.state == "todo" and not step.waits), key=_place)
        found = self._source.ready_steps(number)
        stored = (self._keep(number, step) for step in found if step.place not in known)
        yield from merge(own, stored, key=_place)

    def below(self, number: int, places: Collection[int]) -> list[BackfillItem]:
        """Return the targets of a backfill that wait directly for one of these, in order."""
        own, known = self._below.get(number, {}), self._steps.setdefault(number, {})
        stored = self._source.steps_below(number, [place for place in places if place not in own])
        found = {step.place: known.get(step.place) or self._keep(number, step) for step in stored}
        found |= {place: known[place] for above in places for place in own.get(above, ())}
        return [found[place] for place in sorted(found)]

    def save(self, number: int, step: BackfillItem, now: datetime) -> None:
        """Write what became of a target. When nothing is left of a backfill, it ends."""
        before, backfill = self._steps[number][step.place], self._known()[number]
        self._keep(number, step)
        self._changes.steps[number, step.place] = step
        if step.state != before.state:
            counts = {before.state: getattr(backfill, before.state) - 1, step.state: getattr(backfill, step.state) + 1}
            counted = replace(backfill, **counts)
            self.set(replace(counted, ended=None if counted.todo + counted.asked else now))

    def in_states(self, number: int, states: Collection[StepState], consumer: int | None = None) -> list[BackfillItem]:
        """Return the targets of a backfill, or of one consumer in it, that are in one of these states, in order."""
        known = self._steps.setdefault(number, {})
        for step in self._source.steps_in(number, states, consumer):
            if step.place not in known:
                self._keep(number, step)
        found = (step for step in known.values() if step.state in states)
        return sorted((step for step in found if consumer in (None, step.target.consumer)), key=_place)

    def _known(self) -> dict[int, Backfill]:
        if self._live is None:
            self._live = {backfill.number: backfill for backfill in self._source.backfills()}
        return self._live

    def _keep(self, number: int, step: BackfillItem) -> BackfillItem:
        self._steps.setdefault(number, {})[step.place] = step
        self._places[number, step.target] = step.place
        return step


def _place(step: BackfillItem) -> int:
    return step.place
