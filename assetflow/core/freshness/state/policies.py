"""What is remembered of freshness policies, and when they have to be looked at (contract 8.11 to 8.14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from assetflow.core.freshness.state.changes import Alarms, FreshnessChanges
from assetflow.core.freshness.state.source import FreshnessSource
from assetflow.core.values.freshness_policy import DataTime, FreshnessPolicy, State
from assetflow.core.values.keeping import Cause

Chain = tuple[tuple[str, timedelta], ...]
"""The flows that run one after the other for an asset, each with the time that it is expected to take (8.15)."""


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """The stored state of an asset's policy.

    Attributes:
        policy: the policy that counts.
        since: when the ledger first knew it (8.11).
        state: the state that was judged last.
        state_since: since when the asset has been in this state; `None` before it was judged.
        data_time: the data time of the asset when it was judged; `None` if it was never made.
        due: when its maker is due (8.14); `None` if it is not.
        next_change: when its state can change although nothing happens.
        chain: what has to run for the asset.
    """

    policy: FreshnessPolicy
    since: datetime
    state: State = "unknown"
    state_since: datetime | None = None
    data_time: DataTime | None = None
    due: datetime | None = None
    next_change: datetime | None = None
    chain: Chain = ()


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A change of state of a policy, which becomes one event (8.13).

    Attributes:
        at: the instant at which it changed.
        lag: how old the data was; `None` if it is not known.
        causes: why the asset is out of date.
        maker: the flow that makes the asset; `None` for a source.
    """

    uri: str
    state: State
    at: datetime
    data_time: DataTime | None
    policy: FreshnessPolicy
    lag: timedelta | None = None
    causes: tuple[Cause, ...] = ()
    maker: int | None = None


class Policies:
    """The policies by the URI of their asset: those of the source, and those of this unit of work."""

    def __init__(self, source: FreshnessSource, changes: FreshnessChanges) -> None:
        self._source = source
        self._changes = changes
        self._records: dict[str, PolicyRecord | None] = {}
        self._touched: dict[str, dict[datetime, None]] = {}
        self._due, self._changing = Alarms[str](), Alarms[str]()

    def find(self, uri: str) -> PolicyRecord | None:
        """Return what is remembered of the policy of an asset; `None` if it has none."""
        if uri not in self._records:
            self._records[uri] = self._source.policy(uri)
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

    def save(self, uri: str, record: PolicyRecord) -> None:
        """Write what is remembered of a policy from now on."""
        if self.find(uri) != record:
            self._records[uri] = self._changes.policies[uri] = record
        self._due.set(uri, record.due)
        self._changing.set(uri, record.next_change)

    def declare(self, uri: str, policy: FreshnessPolicy | None, since: datetime) -> None:
        """Start, change or end a policy; an unchanged one keeps its time, and the asset its state until it is judged.

        Parameters:
            since: when a new one begins.
        """
        known = self.find(uri)
        if policy is None:
            if known is not None:
                self._records[uri] = self._changes.policies[uri] = None
                self._due.set(uri, None)
                self._changing.set(uri, None)
        elif known is None or known.policy != policy:
            state, state_since = ("unknown", None) if known is None else (known.state, known.state_since)
            self.save(uri, PolicyRecord(policy, since, state, state_since))

    def tell(self, changes: Iterable[PolicyChange]) -> None:
        """Remember what has to be told of changed states, in the order of their instants."""
        self._changes.told += sorted(changes, key=lambda change: (change.at, change.uri))

    def renew(self) -> None:
        """Forget everything: it is in the source now, and other processes may change it."""
        self._records.clear()
        self._touched.clear()
        self._due, self._changing = Alarms[str](), Alarms[str]()


def judged(record: PolicyRecord, state: State, at: datetime, data_time: DataTime | None) -> PolicyRecord:
    """Return what is remembered of a policy after it was judged."""
    since = record.state_since if state == record.state and record.state_since is not None else at
    return replace(record, state=state, state_since=since, data_time=data_time)


def has_to_be_told(before: State, after: State) -> bool:
    """Return True if a change of state makes an event: `pass` does only after `warn` or `fail` (8.13)."""
    return before != after and (after in ("warn", "fail") or (after == "pass" and before in ("warn", "fail")))
