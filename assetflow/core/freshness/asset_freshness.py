"""How fresh assets are, and how their states changed, as values that pages show and events report (8.13, 8.15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from assetflow.core.freshness.records import Chain, PolicyChange, PolicyRecord
from assetflow.core.shapes import shape
from assetflow.core.values.freshness_policy import DataTime, FreshnessPolicy, State
from assetflow.core.values.keeping import ShownCause, causes_in_words
from assetflow.core.values.words import iso, rounded_in_words, since, span_in_words

_NAMESPACE = UUID("9e1d1d4f-3a5b-5f0a-8c36-2f6f2a9b7d10")


@shape
class FreshnessChange:
    """A change of state of an asset's freshness policy."""

    number: int
    id: UUID
    """The id of the event in Prefect."""
    uri: str
    state: State
    at: datetime
    data_time: DataTime | None
    lag: timedelta | None
    producer: str | None
    flow_run_id: UUID | None
    """The last run of the producer that assetflow started."""
    causes: Sequence[ShownCause]
    words: str


@shape
class FreshnessNow:
    """How fresh an asset with a policy is."""

    uri: str
    state: State
    since: datetime | None
    """Since when the asset has been in this state."""
    why: str | None
    """Why its state is not known now; null if it is."""
    data_time: DataTime | None
    """Up to when the asset has all data (8.12)."""
    lag: timedelta | None
    """Seconds between the data time and now, or the last deadline."""
    maximum_lag: timedelta
    """The seconds that the policy allows."""
    policy: str
    producer: str | None
    due: datetime | None
    """When the producer has to start by its policy (8.14)."""
    feasible: bool
    """False if the flows that make the asset take too long (8.15)."""
    feasibility: str | None


@dataclass(frozen=True)
class StateChange:
    """A change of state of an asset, which becomes one event in Prefect.

    Attributes:
        number: its place among all changes.
        maker: the name of the flow that makes the asset, `flow/deployment`; `None` for a source.
        deployment_id: the deployment of the maker.
        flow_run: the last run of the maker that assetflow started; `None` if there is none.
        posted: when the event was sent to Prefect last, UTC; `None` if it was not.
        stored: when Prefect's log was seen to have it, UTC.
        names: what people call the assets in it, by URI.
    """

    number: int
    change: PolicyChange
    maker: str | None = None
    deployment_id: UUID | None = None
    flow_run: UUID | None = None
    posted: datetime | None = None
    stored: datetime | None = None
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def name(self) -> str:
        """What people call the asset."""
        return self.names.get(self.change.uri, self.change.uri)

    @property
    def id(self) -> UUID:
        """The id of the event: it follows from asset, state and instant (8.13)."""
        instant = self.change.at.astimezone(UTC).isoformat()
        return uuid5(_NAMESPACE, "|".join((self.change.uri, self.change.state, instant)))

    @property
    def at(self) -> datetime:
        """The instant of the change."""
        return self.change.at

    @property
    def is_good(self) -> bool:
        """True if the asset is fresh again."""
        return self.change.state == "pass"

    def describe(self) -> str:
        """Return the change in words: "board is too old: its data is 2 h old, and has to be at most 1 h old"."""
        change = self.change
        verb = {"fail": "is too old", "warn": "is getting old"}.get(change.state, "is fresh again")
        age = "it was never made" if change.lag is None else f"its data is {span_in_words(_seconds(change.lag))} old"
        causes = causes_in_words(change.causes, lambda uri: self.names.get(uri, uri))
        why = f", because {causes}" if change.causes and change.state != "pass" else ""
        return f"{self.name} {verb}: {age}, and has to be {change.policy.describe()}{why}"

    def shown(self) -> FreshnessChange:
        """Return the change as the API shows it."""
        change = self.change
        return FreshnessChange(
            number=self.number,
            id=self.id,
            uri=change.uri,
            state=change.state,
            at=change.at,
            data_time=change.data_time,
            lag=change.lag,
            producer=self.maker,
            flow_run_id=self.flow_run,
            causes=[cause.shown() for cause in change.causes],
            words=self.describe(),
        )


@dataclass(frozen=True)
class Unjudged:
    """Why states are not judged up to now (8.13).

    Attributes:
        since: up to when they are judged, UTC.
        now: when that was read, UTC.
    """

    since: datetime
    why: str
    now: datetime

    def judge(self, record: PolicyRecord) -> PolicyRecord:
        """Return the record, with the state "unknown" if another version may have come since and may be too old."""
        data_time = record.data_time
        if data_time is not None:
            data_time = min(data_time, self.since) if isinstance(data_time, datetime) else self.since
        if record.policy.judge(data_time, record.since, self.now) == record.state:
            return record
        return replace(record, state="unknown", state_since=self.since)


@dataclass(frozen=True)
class AssetFreshness:
    """How fresh an asset with a policy is.

    Attributes:
        maker: the name of the flow that makes it, `flow/deployment`; `None` for a source.
        why: why its state is not known now; empty if it is known, or if the asset was never made.
    """

    uri: str
    record: PolicyRecord
    maker: str | None = None
    why: str = ""

    @classmethod
    def of(cls, uri: str, record: PolicyRecord, maker: str | None, unjudged: Unjudged | None) -> AssetFreshness:
        """Return how fresh an asset is: unknown from the moment up to which its policy is judged."""
        shown = record if unjudged is None else unjudged.judge(record)
        return cls(uri, shown, maker, "" if unjudged is None or shown is record else unjudged.why)

    @property
    def state_in_words(self) -> str:
        """The state, and since when and why it is not known: "unknown since 2026-11-20 18:51:07 UTC: …"."""
        record = self.record
        return f"{record.state}{since(record.state_since)}: {self.why}" if self.why else record.state

    @property
    def is_too_old(self) -> bool:
        """Return True if the asset is older than its policy allows, or old enough for the policy's warning."""
        return self.record.state in ("warn", "fail")

    def lag(self, now: datetime) -> timedelta | None:
        """Return how old the data is, now or at the last deadline; `None` if it is not known."""
        return self.record.policy.lag(self.record.data_time, self.record.since, now)

    @property
    def data_moment(self) -> datetime | None:
        """The data time; `None` if it is current, or the asset was never made."""
        return self.record.data_time if isinstance(self.record.data_time, datetime) else None

    def too_old_at(self, now: datetime) -> datetime | None:
        """Return the next deadline if the asset will be too old then unless made; None if not, or if it is so now."""
        record = self.record
        deadline = record.policy.next_deadline(now)
        if deadline is None or self.is_too_old:
            return None
        state = record.policy.judge(record.data_time, record.since, deadline)
        return deadline if state in ("warn", "fail") else None

    def describe(self, now: datetime) -> str:
        """Return the lag against the policy in words: "20 min old, and has to be at most 1 h old"."""
        lag = self.lag(now)
        age = "" if lag is None else f"{rounded_in_words(lag)} old, and "
        return f"{age}has to be {self.record.policy.describe()}"

    @property
    def is_feasible(self) -> bool:
        """True if the flows that make the asset are quick enough to hold its policy (8.15)."""
        return _length(self.record.chain) <= self.record.policy.longest_chain

    def describe_feasibility(self) -> str:
        """Return in words why the policy cannot be held; empty if it can."""
        return "" if self.is_feasible else infeasible(self.record.chain, self.record.policy)

    def shown(self, now: datetime) -> FreshnessNow:
        """Return the values as the API and `--json` show them."""
        record = self.record
        return FreshnessNow(
            uri=self.uri,
            state=record.state,
            since=record.state_since,
            why=self.why or None,
            data_time=record.data_time,
            lag=self.lag(now),
            maximum_lag=record.policy.maximum_lag,
            policy=record.policy.describe(),
            producer=self.maker,
            due=record.due,
            feasible=self.is_feasible,
            feasibility=self.describe_feasibility() or None,
        )


def infeasible(chain: Chain, policy: FreshnessPolicy) -> str:
    """Return the warning that an asset's runs take too long for its policy."""
    parts = " + ".join(f"{name} {span_in_words(_seconds(span))}" for name, span in chain if span)
    longest = span_in_words(_seconds(policy.longest_chain))
    return f"it cannot be held: {parts}, and the policy leaves {longest} for them"


def data_time_text(data_time: DataTime | None) -> str | None:
    """Return a data time as a text: a moment, "current", or `None` if the asset was never made."""
    return iso(data_time) if isinstance(data_time, datetime) else None if data_time is None else data_time.value


def _length(chain: Chain) -> timedelta:
    return sum((span for _, span in chain), timedelta())


def _seconds(span: timedelta) -> timedelta:
    return timedelta(seconds=round(span.total_seconds()))
