"""The backfills: which targets each has, what they wait for, and what became of them (contract 8.18)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from assetflow.core.freshness.records import Target
from assetflow.core.freshness.state.changes import FreshnessChanges
from assetflow.core.freshness.state.source import FreshnessSource

TargetState = Literal["todo", "asked", "done", "failed", "removed"]

GOES_ON: tuple[TargetState, ...] = ("todo", "asked")


@dataclass(frozen=True)
class Backfill:
    """One backfill.

    Attributes:
        above: each target with those that have to be done before it.
        states: what became of each target.
    """

    number: int
    made: datetime
    above: Mapping[Target, Collection[Target]]
    states: Mapping[Target, TargetState] = field(default_factory=dict[Target, TargetState])
    concurrency: int | None = None
    by: str = ""
    why: str = ""

    def state_of(self, target: Target) -> TargetState | None:
        """Return what became of a target; None if it is none of this backfill."""
        return self.states.get(target, "todo") if target in self.above else None

    def with_states(self, states: Mapping[Target, TargetState]) -> Backfill:
        """Return the backfill after some targets went on."""
        return replace(self, states={**self.states, **states})

    def ready(self) -> Iterator[Target]:
        """Yield the targets that wait for nothing above them any more."""
        for target, above in self.above.items():
            if self.state_of(target) == "todo" and all(self.state_of(each) == "done" for each in above):
                yield target

    @property
    def asked(self) -> int:
        """How many of its targets run."""
        return sum(state == "asked" for state in self.states.values())

    @property
    def goes_on(self) -> bool:
        return any(self.state_of(target) in GOES_ON for target in self.above)

    def below(self, target: Target) -> Iterator[Target]:
        """Yield the targets that wait for a target, directly or through others."""
        found = {target}
        # Those above come first.
        for each, above in self.above.items():
            if not found.isdisjoint(above):
                found.add(each)
                yield each


class Backfills:
    """The backfills that go on, in order."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._changes = changes
        self._open = {backfill.number: backfill for backfill in source.backfills()}

    def open(self) -> Collection[Backfill]:
        """Return the backfills that go on."""
        return list(self._open.values())

    def save(self, backfill: Backfill) -> None:
        """Write a backfill; one of which nothing is left to do is not looked at again."""
        self._changes.backfills[backfill.number] = backfill
        self._open[backfill.number] = backfill
        if not backfill.goes_on:
            del self._open[backfill.number]

    def has(self, target: Target) -> bool:
        """Return True if a target waits or runs in a backfill."""
        return any(backfill.state_of(target) in GOES_ON for backfill in self._open.values())
