"""The runs that go on, and how long those took that completed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from assetflow.core.freshness.records import Inputs, Run, RunState, Target
from assetflow.core.freshness.state.changes import FreshnessChanges
from assetflow.core.freshness.state.source import FreshnessSource

REMEMBERED = 20


class Runs:
    """The runs that go on, by consumer, in the order in which they began."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._source = source
        self._changes = changes
        self._open: dict[int, dict[UUID, Run]] = {}
        self._busy: Counter[Target] = Counter()
        self._durations: dict[int, deque[timedelta]] = {}

    def load(self, consumers: Iterable[int]) -> None:
        """Read the runs of these consumers that go on, as far as they are not known."""
        missing = [number for number in dict.fromkeys(consumers) if number not in self._open]
        if missing:
            self._open |= {number: {} for number in missing}
            for run in self._source.runs(missing):
                self._open[run.target.consumer][run.id] = run
                self._busy[run.target] += 1

    def of(self, consumer: int) -> Collection[Run]:
        """Return the runs of a consumer that go on."""
        return self._of(consumer).values()

    def of_target(self, target: Target) -> Sequence[Run]:
        """Return the runs of a target that go on."""
        return [run for run in self._of(target.consumer).values() if run.target == target]

    def of_flow_run(self, consumer: int, flow_run: UUID) -> Run | None:
        """Return the run of a consumer that Prefect knows by an id, also after its end; `None` if it is not known."""
        known = self._of(consumer)
        found = known.get(flow_run) or self._source.run_of(flow_run)
        # Of a run that goes on, this unit of work may know more than the source.
        return None if found is None else known.get(found.id, found)

    def is_busy(self, target: Target) -> bool:
        """Return True while a run of a target goes on (8.6)."""
        self._of(target.consumer)
        return self._busy[target] > 0

    def begin(self, run: Run) -> None:
        """Remember a run that was asked for or started by hand."""
        known = self._of(run.target.consumer)
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
        if self._of(run.target.consumer).pop(run.id, None) is not None:
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

    def renew(self) -> None:
        """Forget everything: it is in the source now, and other processes may change it."""
        self._open.clear()
        self._busy.clear()
        self._durations.clear()

    def _of(self, consumer: int) -> dict[UUID, Run]:
        if consumer not in self._open:
            self.load([consumer])
        return self._open[consumer]
