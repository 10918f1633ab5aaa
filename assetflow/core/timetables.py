"""Time tables: when a flow runs by the clock, and the partition key that a run has from its time.

Names are Airflow's. Every time table is a value, and its times depend on that value alone, never on when it is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast
from zoneinfo import ZoneInfo

from assetflow.core.cron import Cron
from assetflow.core.cron_words import cron_in_words
from assetflow.core.partitions.keys import check_key
from assetflow.core.recurrence import Recurrence
from assetflow.core.wallclock import as_utc
from assetflow.errors import InvalidEvent, InvalidTimetable

DEFAULT_KEY_FORMAT = "%Y-%m-%dT%H:%M:%S"

# Intervals without a start count from here, as Prefect's do: a time table must not depend on when it was written.
_DEFAULT_ANCHOR = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Tick:
    """One time of a time table, in UTC, and the partition key of its run if the time table gives one (5.7)."""

    time: datetime
    partition_key: str | None = None


class Timetable(ABC):
    """When a flow runs by the clock. All times are aware and in UTC."""

    @abstractmethod
    def next_after(self, moment: datetime) -> Tick | None:
        """The first time strictly after this one; None if there is no more."""

    @abstractmethod
    def previous_before(self, moment: datetime) -> Tick | None:
        """The last time strictly before this one; None if there is none."""

    @abstractmethod
    def describe(self) -> str:
        """The time table in words: "at 00:00 every day (Europe/Berlin)"."""

    @abstractmethod
    def as_json(self) -> dict[str, object]:
        """Plain JSON values with a `kind`; `timetable_from_json` reads them back."""

    def ticks_between(self, after: datetime, until: datetime) -> Iterator[Tick]:
        """The times from `after` (excluded) to `until` (included), one by one."""
        end = as_utc(until)
        tick = self.next_after(after)
        while tick is not None and tick.time <= end:
            yield tick
            tick = self.next_after(tick.time)


@dataclass(frozen=True)
class CronTriggerTimetable(Timetable):
    """The times of a cron expression, on the wall clock of its time zone (6.2).

    Parameters:
        cron: five fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
        timezone: IANA name of the time zone.

    Raises:
        InvalidTimetable: the expression cannot be read or never comes, or the zone is unknown.
    """

    cron: str
    timezone: str = "UTC"
    _clock: Cron = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_clock", Cron(self.cron, self.timezone))

    def next_after(self, moment: datetime) -> Tick | None:
        return Tick(self._clock.next_after(moment))

    def previous_before(self, moment: datetime) -> Tick | None:
        return Tick(self._clock.previous_before(moment))

    def describe(self) -> str:
        return cron_in_words(self._clock)

    def as_json(self) -> dict[str, object]:
        return {"kind": "cron", "cron": self.cron, "timezone": self.timezone}


@dataclass(frozen=True)
class CronPartitionTimetable(Timetable):
    """The times of a cron expression, each run with the key of its time (5.7).

    Parameters:
        cron: as in `CronTriggerTimetable`.
        timezone: IANA name of the time zone, of the cron and of the keys.
        run_offset: the key is that of the tick so many ticks later; -1 for "yesterday's data" of a daily cron.
        key_format: how a time becomes a key, as in `strftime`.

    Raises:
        InvalidTimetable: as in `CronTriggerTimetable`; a `run_offset` that is no whole number; a format that gives keys
            that are blank or longer than 250 characters.
    """

    cron: str
    timezone: str = "UTC"
    run_offset: int = 0
    key_format: str = DEFAULT_KEY_FORMAT
    _clock: Cron = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_clock", Cron(self.cron, self.timezone))
        offset = cast(object, self.run_offset)
        if not isinstance(offset, int) or isinstance(offset, bool):
            raise InvalidTimetable(
                f"run_offset is {offset!r}", fix="Give a whole number of ticks, such as -1.", rule="5.7"
            )
        try:
            check_key(_DEFAULT_ANCHOR.strftime(self.key_format))
        except InvalidEvent as cause:
            raise InvalidTimetable(
                f"The key format {self.key_format!r} gives a bad key: {cause.message}",
                fix='A good one is "%Y-%m-%d".',
                rule="2.5",
            ) from cause

    def next_after(self, moment: datetime) -> Tick | None:
        return self._tick(self._clock.next_after(moment))

    def previous_before(self, moment: datetime) -> Tick | None:
        return self._tick(self._clock.previous_before(moment))

    def key_of(self, time: datetime) -> str:
        """The partition key of the run of this tick."""
        moved = as_utc(time)
        step = self._clock.next_after if self.run_offset > 0 else self._clock.previous_before
        for _ in range(abs(self.run_offset)):
            moved = step(moved)
        return moved.astimezone(ZoneInfo(self.timezone)).strftime(self.key_format)

    def describe(self) -> str:
        offset = "" if self.run_offset == 0 else f" moved by {self.run_offset:+} ticks"
        return f"{cron_in_words(self._clock)}, with the time{offset} as partition key"

    def as_json(self) -> dict[str, object]:
        return {
            "kind": "cron_partition",
            "cron": self.cron,
            "timezone": self.timezone,
            "run_offset": self.run_offset,
            "key_format": self.key_format,
        }

    def _tick(self, time: datetime) -> Tick:
        return Tick(time, self.key_of(time))


@dataclass(frozen=True)
class DeltaTriggerTimetable(Timetable):
    """Equal intervals of real time; a day is 24 hours whatever the clocks do.

    Parameters:
        delta: the interval, at least one second.
        start: the first time. Without it the times reach back without end; one of them is 1 January 2020, 00:00 UTC.

    Raises:
        InvalidTimetable: an interval below one second, or a start without a time zone.
    """

    delta: timedelta
    start: datetime | None = None

    def __post_init__(self) -> None:
        delta = cast(object, self.delta)
        if not isinstance(delta, timedelta) or delta < timedelta(seconds=1):
            raise InvalidTimetable(f"The interval is {delta!r}", fix="Give a timedelta of at least one second.")
        if self.start is not None:
            object.__setattr__(self, "start", as_utc(self.start))

    def next_after(self, moment: datetime) -> Tick | None:
        moment = as_utc(moment)
        if self.start is not None and moment < self.start:
            return Tick(self.start)
        anchor = self.start or _DEFAULT_ANCHOR
        return Tick(anchor + ((moment - anchor) // self.delta + 1) * self.delta)

    def previous_before(self, moment: datetime) -> Tick | None:
        moment = as_utc(moment)
        if self.start is not None and moment <= self.start:
            return None
        anchor = self.start or _DEFAULT_ANCHOR
        return Tick(anchor - ((anchor - moment) // self.delta + 1) * self.delta)

    def describe(self) -> str:
        since = "" if self.start is None else f" from {self.start:%Y-%m-%d %H:%M:%S} UTC on"
        return f"every {_duration(self.delta)}{since}"

    def as_json(self) -> dict[str, object]:
        start = None if self.start is None else self.start.isoformat()
        return {"kind": "delta", "seconds": self.delta.total_seconds(), "start": start}


@dataclass(frozen=True)
class RRuleTimetable(Timetable):
    """The times of a recurrence rule of iCalendar, on the wall clock of its time zone.

    Parameters:
        rrule: the text of RFC 5545, such as "FREQ=WEEKLY;BYDAY=MO,TH;BYHOUR=6". Without DTSTART it counts from
            1 January 2020.
        timezone: IANA name of the time zone.

    Raises:
        InvalidTimetable: the rule cannot be read, or the zone is unknown.
    """

    rrule: str
    timezone: str = "UTC"
    _clock: Recurrence = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_clock", Recurrence(self.rrule, self.timezone))

    def next_after(self, moment: datetime) -> Tick | None:
        time = self._clock.next_after(moment)
        return None if time is None else Tick(time)

    def previous_before(self, moment: datetime) -> Tick | None:
        time = self._clock.previous_before(moment)
        return None if time is None else Tick(time)

    def ticks_between(self, after: datetime, until: datetime) -> Iterator[Tick]:
        return map(Tick, self._clock.between(after, until))

    def describe(self) -> str:
        return f"at the times of the recurrence rule {self.rrule!r} ({self.timezone})"

    def as_json(self) -> dict[str, object]:
        return {"kind": "rrule", "rrule": self.rrule, "timezone": self.timezone}


@dataclass(frozen=True)
class PartitionedAtRuntime(Timetable):
    """Never started by the clock; whoever starts a run names its partition key (5.7)."""

    def next_after(self, moment: datetime) -> Tick | None:  # noqa: ARG002
        return None

    def previous_before(self, moment: datetime) -> Tick | None:  # noqa: ARG002
        return None

    def describe(self) -> str:
        return "only when somebody starts it with a partition key"

    def as_json(self) -> dict[str, object]:
        return {"kind": "partitioned_at_runtime"}


def timetable_from_json(value: Mapping[str, object]) -> Timetable:
    """The time table that `as_json` wrote.

    Raises:
        InvalidTimetable: an unknown kind, or options that its kind does not have.
    """
    options = {name: option for name, option in value.items() if name != "kind"}
    make = _KINDS.get(str(value.get("kind")))
    if make is None:
        raise InvalidTimetable(
            f"There is no time table of the kind {value.get('kind')!r}", fix=f"Known are {', '.join(_KINDS)}."
        )
    try:
        return make(**options)
    except (TypeError, ValueError) as cause:
        if isinstance(cause, InvalidTimetable):
            raise
        raise InvalidTimetable(f"The time table {dict(value)!r} cannot be read: {cause}") from cause


def _delta_from_json(*, seconds: float, start: str | None = None) -> DeltaTriggerTimetable:
    return DeltaTriggerTimetable(timedelta(seconds=seconds), None if start is None else datetime.fromisoformat(start))


_KINDS: dict[str, Callable[..., Timetable]] = {
    "cron": CronTriggerTimetable,
    "cron_partition": CronPartitionTimetable,
    "delta": _delta_from_json,
    "rrule": RRuleTimetable,
    "partitioned_at_runtime": PartitionedAtRuntime,
}


def _duration(delta: timedelta) -> str:
    for seconds, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        count, rest = divmod(delta.total_seconds(), seconds)
        if count and not rest:
            return unit if count == 1 else f"{count:g} {unit}s"
    return f"{delta.total_seconds():g} seconds"
