"""The new decisions, and the consumers and keys for which a run is going."""

from __future__ import annotations

from collections.abc import Iterable

from assetflow.core.rules.state.changes import Changes
from assetflow.core.rules.state.source import StateSource
from assetflow.core.values.consumers import Decision


class Decisions:
    """The decisions. Runs end outside of the fold, so each unit of work reads anew which of them are going."""

    def __init__(self, source: StateSource, changes: Changes) -> None:
        self._source = source
        self._changes = changes
        self._busy: dict[int, set[str | None]] = {}

    def load(self, consumers: Iterable[int]) -> None:
        """Read for which keys of these consumers a run is going, unless it is known."""
        missing = dict.fromkeys(number for number in consumers if number not in self._busy)
        if missing:
            self._busy |= {number: set() for number in missing}
            for number, key in self._source.busy(missing):
                self._busy[number].add(key)
            for decision in self._changes.decisions:
                if decision.consumer in missing:
                    self._busy[decision.consumer].add(decision.target_key)

    def is_busy(self, consumer: int, target_key: str | None) -> bool:
        """Return True if a run that was started for this consumer and key is still going. Contract 4.7."""
        self.load([consumer])
        return target_key in self._busy[consumer]

    def add(self, decision: Decision) -> None:
        """Write a decision; its run counts as going from now on."""
        self._changes.decisions.append(decision)
        if decision.consumer in self._busy:
            self._busy[decision.consumer].add(decision.target_key)

    def retry_run(self, consumer: int, target_key: str | None) -> None:
        """Let a run of a consumer for one key count as going again. Contract 4.7."""
        self.load([consumer])
        self._busy[consumer].add(target_key)

    def end_runs(self, consumer: int) -> None:
        """Let all runs of a consumer count as ended. Contract 4.7."""
        self._busy[consumer] = set()

    def end_run(self, consumer: int, target_key: str | None) -> None:
        """Let the run of a consumer for one key count as ended. Contract 4.7."""
        self.load([consumer])
        self._busy[consumer].discard(target_key)

    def renew(self) -> None:
        """Forget which runs are going."""
        self._busy.clear()
