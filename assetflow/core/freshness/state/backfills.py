"""The backfills: which targets each has, what they wait for, and what became of them (contract 8.18)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import merge
from typing import Literal

from assetflow.core.freshness.records import Target
from assetflow.core.freshness.state.changes import FreshnessChanges
from assetflow.core.freshness.state.source import FreshnessSource

StepState = Literal["todo", "asked", "done", "failed", "removed"]

GOES_ON: tuple[StepState, ...] = ("todo", "asked")


@dataclass(frozen=True, slots=True)
class Backfill:
    """One backfill.

    Attributes:
        uri: the asset whose maker runs.
        down: whether the targets below run too.
        concurrency: how many of its runs go on at most at a time; `None` for any number.
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


class Backfills:
    """The backfills that go on, in order, and their targets."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._source = source
        self._changes = changes
        self._live: dict[int, Backfill] | None = None
        self._over: dict[int, Backfill] = {}
        self._steps: dict[int, dict[int, BackfillItem]] = {}
        self._places: dict[tuple[int, Target], int | None] = {}
        self._below: dict[int, dict[int, list[int]]] = {}

    def live(self) -> Collection[Backfill]:
        """Return the backfills that go on, also those that were stopped, in order."""
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
        """Write a backfill: it begins, is stopped, goes on or ends."""
        known = self._known()
        known[backfill.number] = self._changes.backfills[backfill.number] = backfill
        if backfill.ended is not None:
            self._over[backfill.number] = known.pop(backfill.number)

    def find(self, number: int, target: Target) -> BackfillItem | None:
        """Return the target's step in a backfill, or `None` if it is not part of it."""
        if (number, target) not in self._places:
            step = self._source.step(number, target)
            if step is None:
                self._places[number, target] = None
            else:
                self._keep(number, step)
        place = self._places[number, target]
        return None if place is None else self._steps[number][place]

    def has(self, target: Target) -> bool:
        """Return True if a target waits or runs in a backfill that was not stopped."""
        going_on = (each.number for each in self.live() if each.stopped is None)
        steps = (self.find(number, target) for number in going_on)
        return any(step is not None and step.state in GOES_ON for step in steps)

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

    def of_consumer(self, number: int, consumer: int) -> list[BackfillItem]:
        """Return the targets of a consumer in a backfill, in order."""
        known = self._steps.setdefault(number, {})
        for step in self._source.steps_of(number, consumer):
            if step.place not in known:
                self._keep(number, step)
        return sorted((step for step in known.values() if step.target.consumer == consumer), key=_place)

    def taken_off(self, number: int) -> list[BackfillItem]:
        """Return the targets of a backfill that failed, or were taken off, in order."""
        known = self._steps.setdefault(number, {})
        for step in self._source.steps_taken_off(number):
            if step.place not in known:
                self._keep(number, step)
        return sorted((step for step in known.values() if step.state in ("failed", "removed")), key=_place)

    def save(self, number: int, step: BackfillItem, now: datetime) -> None:
        """Write what became of a target. When nothing is left of a backfill, it ends."""
        before, backfill = self._steps[number][step.place], self._known()[number]
        self._keep(number, step)
        self._changes.steps[number, step.place] = step
        if step.state != before.state:
            counts = {before.state: getattr(backfill, before.state) - 1, step.state: getattr(backfill, step.state) + 1}
            counted = replace(backfill, **counts)
            self.set(replace(counted, ended=None if counted.todo + counted.asked else now))

    def renew(self) -> None:
        """Forget everything: it is in the source now, and other processes may change it."""
        self._live = None
        self._over.clear()
        self._steps.clear()
        self._places.clear()
        self._below.clear()

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
