"""What is remembered of freshness policies (contract 8.11 to 8.14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from assetflow.core.freshness.moments import DataTime
from assetflow.core.freshness.policy import FreshnessPolicy, State
from assetflow.core.freshness.state.alarms import Alarms
from assetflow.core.freshness.state.changes import FreshnessChanges
from assetflow.core.freshness.state.source import FreshnessSource


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """What is remembered of the policy of an asset.

    Attributes:
        policy: the policy that counts.
        since: when the ledger first knew it (8.11).
        state: the state that was told last.
        due: when its maker is due (8.14); None if it is not.
        next_change: when its state can change although nothing happens.
    """

    policy: FreshnessPolicy
    since: datetime
    state: State = "unknown"
    due: datetime | None = None
    next_change: datetime | None = None


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A change of state of a policy, which becomes one event (8.13)."""

    uri: str
    state: State
    at: datetime
    data_time: DataTime | None


class Policies:
    """The policies by the URI of their asset."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._changes = changes
        self._records: dict[str, PolicyRecord] = dict(source.policies())
        self._touched: dict[str, None] = {}
        self._due, self._changing = Alarms[str](), Alarms[str]()
        for uri, record in self._records.items():
            self._set_alarms(uri, record)

    def find(self, uri: str) -> PolicyRecord | None:
        """Return what is remembered of the policy of an asset; None if it has none."""
        return self._records.get(uri)

    def all(self) -> Mapping[str, PolicyRecord]:
        """Return all policies by URI."""
        return self._records

    def take_due(self, until: datetime) -> list[str]:
        """Return the assets whose makers are due up to a moment, each once."""
        return self._due.take(until)

    def touch(self, uri: str) -> None:
        """Remember that the state of a policy has to be judged."""
        self._touched[uri] = None

    def take(self, until: datetime) -> list[str]:
        """Return the assets whose policies have to be judged, because of what happened or of the time."""
        found = dict.fromkeys([*self._touched, *self._changing.take(until)])
        self._touched.clear()
        return list(found)

    def next_look(self) -> datetime | None:
        """Return the next instant at which a maker is due or a state can change."""
        moments = (self._due.next(), self._changing.next())
        return min((moment for moment in moments if moment is not None), default=None)

    def save(self, uri: str, record: PolicyRecord) -> None:
        """Write what is remembered of a policy from now on."""
        if self._records.get(uri) != record:
            self._records[uri] = self._changes.policies[uri] = record
        self._set_alarms(uri, record)

    def declare(self, uri: str, policy: FreshnessPolicy | None, now: datetime) -> None:
        """Let a policy begin, change or end. One that stays as it is keeps its time."""
        known = self._records.get(uri)
        if policy is None:
            if known is not None:
                del self._records[uri]
                self._changes.policies[uri] = None
                self._due.set(uri, None)
                self._changing.set(uri, None)
        elif known is None or known.policy != policy:
            self.save(uri, PolicyRecord(policy, now))

    def tell(self, uri: str, state: State, at: datetime, data_time: DataTime | None) -> None:
        """Remember a state, and that it has to be told unless it is the first good one."""
        known = self._records[uri]
        if state != known.state:
            if state in ("warn", "fail") or (state == "pass" and known.state in ("warn", "fail")):
                self._changes.told.append(PolicyChange(uri, state, at, data_time))
            self.save(uri, replace(known, state=state))

    def _set_alarms(self, uri: str, record: PolicyRecord) -> None:
        self._due.set(uri, record.due)
        self._changing.set(uri, record.next_change)
