"""What is remembered of targets: what they tried, what is waived, and what was said of them last."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from datetime import datetime

from assetflow.core.freshness.records import Target, TargetRecord
from assetflow.core.freshness.state.alarms import Alarms
from assetflow.core.freshness.state.changes import FreshnessChanges
from assetflow.core.freshness.state.source import FreshnessSource

_NEW = TargetRecord()


class Targets:
    """The records of targets, and an index by verdict."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._source = source
        self._changes = changes
        self._records: dict[Target, TargetRecord] = {}
        self._retries = Alarms[Target]()
        self._by_verdict: dict[str, dict[int, dict[Target, None]]] = {}
        self._waiting: dict[int, list[Target]] = {}

    def load(self, targets: Iterable[Target]) -> None:
        """Read what is remembered of these targets, as far as it is not known."""
        missing = [target for target in dict.fromkeys(targets) if target not in self._records]
        if missing:
            self._records |= dict.fromkeys(missing, _NEW)
            self._records |= dict(self._source.records(missing))

    def find(self, target: Target) -> TargetRecord:
        """Return what is remembered of a target."""
        if target not in self._records:
            self.load([target])
        return self._records[target]

    def save(self, target: Target, record: TargetRecord) -> None:
        """Write what is remembered of a target from now on."""
        before = self.find(target)
        if before == record:
            return
        self._records[target] = self._changes.targets[target] = record
        if before.retry_at != record.retry_at:
            self._retries.set(target, record.retry_at)
            self._changes.looks[target] = record.retry_at
        if before.verdict != record.verdict:
            self._by_verdict.get(before.verdict, {}).get(target.consumer, {}).pop(target, None)
            if record.verdict:
                self._by_verdict.setdefault(record.verdict, {}).setdefault(target.consumer, {})[target] = None

    def load_waiting(self, consumers: Iterable[int]) -> None:
        """Read which targets of these consumers wait for others, as far as it is not known."""
        missing = [number for number in dict.fromkeys(consumers) if number not in self._waiting]
        if missing:
            self._waiting |= {number: [] for number in missing}
            for target in self._source.waiting(missing):
                self._waiting[target.consumer].append(target)

    def waiting(self, consumer: int) -> Collection[Target]:
        """Return the targets of a consumer that wait for others."""
        self.load_waiting([consumer])
        own = self._by_verdict.get("waits", {}).get(consumer, {})
        stored = (each for each in self._waiting[consumer] if each not in self._changes.targets)
        return dict.fromkeys([*own, *stored])

    def with_verdict(self, verdict: str, consumer: int, most: int | None = None) -> Collection[Target]:
        """Return the targets of a consumer of which this was said last.

        Parameters:
            most: at least that many, if there are; all by default.
        """
        own = self._by_verdict.get(verdict, {}).get(consumer, {})
        stored = self._source.with_verdict(verdict, consumer, most)
        return dict.fromkeys([*own, *(each for each in stored if each not in self._changes.targets)])

    def verdicts(self, consumer: int, is_known: Callable[[Target], bool]) -> Mapping[str, int]:
        """Return what was said last of the targets of a consumer, each with the number of targets.

        Parameters:
            is_known: returns whether there is a target; a run by hand may have a key of its own.
        """
        stored = self._source.verdicts(consumer)
        if not any(target.consumer == consumer for target in self._changes.targets):
            return stored
        names = {*stored, *self._by_verdict}
        return {name: sum(map(is_known, self.with_verdict(name, consumer))) for name in sorted(names)}

    def consumers_with(self, verdict: str) -> Collection[int]:
        """Return the consumers that have targets of which this was said last."""
        own = (number for number, targets in self._by_verdict.get(verdict, {}).items() if targets)
        return dict.fromkeys([*own, *self._source.consumers_with(verdict)])

    def set_aside(self, consumer: int, but: Set[str], now: datetime) -> None:
        """Let the targets of a consumer be judged later, except some keys; until then, they count as owed."""
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
            if self._has_room(most)
            else []
        )
        found = dict.fromkeys([*self._retries.take(until), *stored])
        looks |= dict.fromkeys(found)
        return [*found]

    def wait_for_retry(self, target: Target, moment: datetime) -> None:
        """Look at a target again when its failed run is repeated, although it was looked at now."""
        self._retries.set(target, moment)
        self._changes.looks[target] = moment

    def _has_room(self, most: int | None) -> bool:
        return most is None or len(self._changes.looks) < most

    def next_due(self) -> datetime | None:
        """Return when the next target has to be looked at."""
        found = (self._retries.next(), self._source.next_due_target())
        return min((moment for moment in found if moment is not None), default=None)

    def renew(self) -> None:
        """Forget everything: it is in the source now, and other processes may change it."""
        self._records.clear()
        self._retries = Alarms[Target]()
        self._by_verdict.clear()
        self._waiting.clear()
