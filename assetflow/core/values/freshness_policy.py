"""Freshness policies: how old the data of an asset may be (contract 8.11, 8.13)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, cast

from assetflow.core.time.cron import Cron
from assetflow.core.values.conditions import Leaf, Token, stands_for
from assetflow.core.values.words import span_in_words
from assetflow.errors import InvalidSchedule

if TYPE_CHECKING:
    from assetflow.core.values.assets import Asset, AssetRef


class Current(Enum):
    """The data time of what holds everything there is."""

    CURRENT = "current"


CURRENT: Final = Current.CURRENT

DataTime = datetime | Literal[Current.CURRENT]
"""Up to when all data is there; `CURRENT` if nothing newer is known."""


def least(moments: Iterable[DataTime]) -> DataTime:
    """Return the earliest data time; `CURRENT` if none is earlier."""
    return min((moment for moment in moments if isinstance(moment, datetime)), default=CURRENT)


def is_before(data_time: DataTime, moment: datetime) -> bool:
    """Return True if data is missing that came before a moment."""
    return isinstance(data_time, datetime) and data_time < moment


def lag_at(data_time: DataTime, moment: datetime) -> timedelta:
    """Return how old data is at a moment; below zero if it is newer."""
    return moment - data_time if isinstance(data_time, datetime) else timedelta()


State = Literal["pass", "warn", "fail", "unknown"]

SHORTEST = timedelta(seconds=60)


@dataclass(frozen=True)
class FreshnessPolicy:
    """A policy: at any time the asset holds all data up to `maximum_lag` ago; with a deadline, only at its times.

    >>> from datetime import timedelta
    >>> from assetflow import Asset, FreshnessPolicy
    >>> nine = FreshnessPolicy(timedelta(hours=1), deadline="0 9 * * 1-5", timezone="Europe/Berlin")
    >>> board = Asset("s3://lake/board", freshness=nine)

    Contract 8.11.

    Parameters:
        maximum_lag: how old the data may be, at least 60 seconds.
        deadline: the times at which the policy is judged, a cron; `None` for always.
        timezone: the IANA name of the time zone of `deadline`.
        warn_after: from this lag on there is a warning; less than `maximum_lag`. `None` for no warnings.
        inputs: only the data of these inputs counts; `None` for all inputs.

    Raises:
        InvalidSchedule: a lag, the cron, the time zone or an input is one that a policy cannot have.
    """

    maximum_lag: timedelta
    deadline: str | None = None
    timezone: str = "UTC"
    warn_after: timedelta | None = None
    inputs: Sequence[Asset | AssetRef] | None = field(default=None, compare=False)
    # A reference to an input is as good as the asset itself.
    _tokens: frozenset[Token] | None = field(init=False, repr=False)
    _times: Cron | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_lag("maximum_lag", self.maximum_lag, SHORTEST)
        if self.warn_after is not None:
            _check_lag("warn_after", self.warn_after, timedelta(microseconds=1))
            if self.warn_after >= self.maximum_lag:
                raise InvalidSchedule(
                    "warn_after is not below maximum_lag, so there would be no warning",
                    rule="8.11",
                    fix="Give a shorter warn_after, or leave it out",
                )
        inputs = None if self.inputs is None else _check_inputs(self.inputs)
        self.__dict__.update(
            inputs=inputs,
            _tokens=None if inputs is None else frozenset(each.token for each in inputs),
            _times=None if self.deadline is None else Cron(self.deadline, self.timezone),
        )

    def last_deadline(self, since: datetime, now: datetime) -> datetime | None:
        """Return the last deadline up to now that the policy has known; `None` before the first."""
        if self._times is None:
            return None
        last = self._times.previous_before(now + timedelta(microseconds=1))
        return last if last > since else None

    def next_deadline(self, after: datetime) -> datetime | None:
        """Return the first deadline after a moment; `None` if the policy has none."""
        return None if self._times is None else self._times.next_after(after)

    def judge(self, data_time: DataTime | None, since: datetime, now: datetime) -> State:
        """Return the state of an asset under this policy. Contract 8.13.

        Parameters:
            data_time: `None` if the asset was never made.
            since: when the policy began, UTC.
            now: the instant at which it is judged, UTC.
        """
        at = self._judged_at(since, now)
        if data_time is None:
            late = now >= since + self.maximum_lag if self.deadline is None else at is not None
            return "fail" if late else "unknown"
        if at is None:
            return "pass"
        lag = lag_at(data_time, at)
        # At a deadline, data of exactly deadline − maximum_lag is in time.
        if self._is_over(lag, self.maximum_lag):
            return "fail"
        return "warn" if self.warn_after is not None and self._is_over(lag, self.warn_after) else "pass"

    def lag(self, data_time: DataTime | None, since: datetime, now: datetime) -> timedelta | None:
        """Return how old the data is, now or at the last deadline; `None` if it is not known."""
        at = self._judged_at(since, now)
        return None if data_time is None or at is None else max(lag_at(data_time, at), timedelta())

    def next_change(self, data_time: DataTime | None, since: datetime, now: datetime) -> datetime | None:
        """Return the next instant after now at which the state can change although nothing happens."""
        if self.deadline is not None:
            return self.next_deadline(now)
        if isinstance(data_time, Current):
            return None
        first = since if data_time is None else data_time
        lags = (self.maximum_lag, None if data_time is None else self.warn_after)
        return min((first + lag for lag in lags if lag is not None and first + lag > now), default=None)

    @property
    def longest_chain(self) -> timedelta:
        """The longest total run time with which the policy can be met."""
        return self.maximum_lag / 2 if self.deadline is None else self.maximum_lag * 0.9

    def describe(self) -> str:
        """Return the policy in words: "at most 1 h old at 0 9 * * * (UTC)"."""
        when = "" if self.deadline is None else f" at {self.deadline} ({self.timezone})"
        return f"at most {span_in_words(self.maximum_lag)} old{when}"

    def _judged_at(self, since: datetime, now: datetime) -> datetime | None:
        return now if self.deadline is None else self.last_deadline(since, now)

    def _is_over(self, lag: timedelta, limit: timedelta) -> bool:
        return lag >= limit if self.deadline is None else lag > limit


def _check_inputs(inputs: object) -> tuple[Asset | AssetRef, ...]:
    given = cast("Sequence[object]", inputs) if isinstance(inputs, list | tuple) else (inputs,)
    found = [stands_for(each) for each in given]
    if not found or any(not isinstance(each, Leaf) or each.token.kind == "alias" for each in found):
        raise InvalidSchedule(
            f"`inputs` must be assets or references, not {inputs!r}",
            rule="8.11",
            fix="Give assets or references that the asset is made from, or leave inputs out for all of them",
        )
    return cast("tuple[Asset | AssetRef, ...]", tuple(found))


def _check_lag(name: str, value: object, least: timedelta) -> None:
    if not isinstance(value, timedelta):
        raise InvalidSchedule(f"{name} is {value!r}, not a timedelta", rule="8.11", fix="Write timedelta(hours=1)")
    if value < least:
        raise InvalidSchedule(f"{name} is shorter than {span_in_words(least)}", rule="8.11", fix="Give a longer one")
