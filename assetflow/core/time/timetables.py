"""Timetables: when the clock starts a flow, and which partition key such a run has.

The names are Airflow's. A timetable is a value, and equal timetables always give the same times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal, cast
from zoneinfo import ZoneInfo

from assetflow.core.json_data import check_key
from assetflow.core.time.cron import Cron, as_utc, cron_in_words
from assetflow.core.time.recurrence import Recurrence
from assetflow.errors import InvalidEvent, InvalidTimetable

DEFAULT_KEY_FORMAT = "%Y-%m-%dT%H:%M:%S"
# Intervals without a start count from here, as in Prefect: a timetable must not depend on when it was written.
_DEFAULT_ANCHOR = datetime(2020, 1, 1, tzinfo=UTC)

# Which of the times that were missed have a run (6.1).
MissedTimes = Literal["all", "latest"]


@dataclass(frozen=True)
class Tick:
    """One time of a timetable, in UTC, and the partition key of its run if the timetable gives one. Contract 5.7."""

    time: datetime
    partition_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Timetable(ABC):
    """The base class of timetables: when a flow runs by the clock. All times are in UTC.

    >>> from datetime import UTC, datetime
    >>> from assetflow.timetables import CronTriggerTimetable
    >>> morning = CronTriggerTimetable("0 6 * * *", timezone="Europe/Berlin")
    >>> morning.next_after(datetime(2026, 1, 1, 6, tzinfo=UTC)).time
    datetime.datetime(2026, 1, 2, 5, 0, tzinfo=datetime.timezone.utc)

    Contract 6.0, 6.1.

    Parameters:
        catchup: which of the times that were missed have a run: "all", or the "latest" one. False is "latest".

    Raises:
        InvalidTimetable: `catchup` is something else.
    """

    kind: ClassVar[str]
    catchup: MissedTimes | bool = "all"

    def __post_init__(self) -> None:
        if isinstance(self.catchup, bool):
            object.__setattr__(self, "catchup", "all" if self.catchup else "latest")
        elif self.catchup not in ("all", "latest"):
            raise InvalidTimetable(f"catchup is {self.catchup!r}", rule="6.1", fix='Write "all", "latest" or False')

    @abstractmethod
    def next_after(self, moment: datetime) -> Tick | None:
        """Return the first time strictly after `moment`, or `None` if there are no more."""

    @abstractmethod
    def previous_before(self, moment: datetime) -> Tick | None:
        """Return the last time strictly before `moment`, or `None` if there is none."""

    @abstractmethod
    def describe(self) -> str:
        """Return the timetable in words: "at 00:00 every day (Europe/Berlin)"."""

    def as_json(self) -> dict[str, object]:
        """Return plain JSON values with a `kind`, which `timetable_from_json` reads back."""
        options = {each.name: getattr(self, each.name) for each in fields(self) if each.init and each.name != "catchup"}
        return {"kind": self.kind, **options, **({} if self.catchup == "all" else {"catchup": self.catchup})}

    def ticks_between(self, after: datetime, until: datetime) -> Iterator[Tick]:
        """Return the times after `after`, up to and including `until`, one by one."""
        end = as_utc(until)
        tick = self.next_after(after)
        while tick is not None and tick.time <= end:
            yield tick
            tick = self.next_after(tick.time)


@dataclass(frozen=True)
class _CronTimetable(Timetable):
    """A timetable with the times of a cron expression."""

    cron: str
    timezone: str = "UTC"
    _clock: Cron = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_clock", Cron(self.cron, self.timezone))

    def next_after(self, moment: datetime) -> Tick | None:
        return self._tick(self._clock.next_after(moment))

    def previous_before(self, moment: datetime) -> Tick | None:
        return self._tick(self._clock.previous_before(moment))

    def describe(self) -> str:
        return cron_in_words(self._clock)

    def _tick(self, time: datetime) -> Tick:
        return Tick(time)


@dataclass(frozen=True)
class CronTriggerTimetable(_CronTimetable):
    """The times of a cron expression, on the wall clock of its time zone.

    >>> from assetflow.timetables import CronTriggerTimetable
    >>> CronTriggerTimetable("0 6 * * *", timezone="Europe/Berlin").describe()
    'at 06:00 every day (Europe/Berlin)'

    Contract 6.2 says what happens when clocks change.

    Parameters:
        cron: five fields, or one of `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
        timezone: the IANA name of the time zone.
        catchup: as in `Timetable`.

    Raises:
        InvalidTimetable: the expression cannot be read or has no times, or the time zone is unknown.
    """

    kind = "cron"


@dataclass(frozen=True)
class CronPartitionTimetable(_CronTimetable):
    """The times of a cron expression, where each run has its time as partition key.

    >>> from datetime import UTC, datetime
    >>> from assetflow.timetables import CronPartitionTimetable
    >>> yesterday = CronPartitionTimetable("0 6 * * *", run_offset=-1, key_format="%Y-%m-%d")
    >>> yesterday.next_after(datetime(2026, 11, 20, tzinfo=UTC)).partition_key
    '2026-11-19'

    Contract 5.7.

    Parameters:
        cron: as in `CronTriggerTimetable`.
        timezone: the IANA name of the time zone of the cron and of the keys.
        run_offset: how many ticks after the run's own time the key's time is; -1 is the tick before, such as yesterday.
        key_format: how the key's time is written, as in `strftime`.
        catchup: as in `Timetable`.

    Raises:
        InvalidTimetable: as in `CronTriggerTimetable`; or `run_offset` is not a whole number, or `key_format` gives
            keys that are blank or longer than 250 characters.
    """

    kind = "cron_partition"
    run_offset: int = 0
    key_format: str = DEFAULT_KEY_FORMAT

    def __post_init__(self) -> None:
        super().__post_init__()
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

    def key_of(self, time: datetime) -> str:
        """Return the partition key of the run at this time of the cron."""
        moved = as_utc(time)
        step = self._clock.next_after if self.run_offset > 0 else self._clock.previous_before
        for _ in range(abs(self.run_offset)):
            moved = step(moved)
        return moved.astimezone(ZoneInfo(self.timezone)).strftime(self.key_format)

    def describe(self) -> str:
        offset = "" if self.run_offset == 0 else f" moved by {self.run_offset:+} ticks"
        return f"{super().describe()}, with the time{offset} as partition key"

    def _tick(self, time: datetime) -> Tick:
        return Tick(time, self.key_of(time))


@dataclass(frozen=True)
class DeltaTriggerTimetable(Timetable):
    """Times at equal intervals. A day is 24 hours, whatever the clocks do.

    >>> from datetime import timedelta
    >>> from assetflow.timetables import DeltaTriggerTimetable
    >>> DeltaTriggerTimetable(timedelta(hours=6)).describe()
    'every 6 hours'

    Contract 6.0.

    Parameters:
        delta: the interval, at least one second.
        start: the first time, with a time zone. If it is `None`, there is no first time, and one time is
            2020-01-01T00:00:00 UTC.
        catchup: as in `Timetable`.

    Raises:
        InvalidTimetable: the interval is below one second, or `start` has no time zone.
    """

    kind = "delta"
    delta: timedelta
    start: datetime | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
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
        known = super().as_json() | {"delta": self.delta.total_seconds(), "start": start}
        return {"seconds" if name == "delta" else name: value for name, value in known.items()}


@dataclass(frozen=True)
class RRuleTimetable(Timetable):
    """The times of an iCalendar recurrence rule, on the wall clock of its time zone.

    >>> from datetime import UTC, datetime
    >>> from assetflow.timetables import RRuleTimetable
    >>> mondays = RRuleTimetable("FREQ=WEEKLY;BYDAY=MO;BYHOUR=6;BYMINUTE=0;BYSECOND=0", timezone="Europe/Berlin")
    >>> mondays.next_after(datetime(2026, 11, 20, tzinfo=UTC)).time.isoformat()
    '2026-11-23T05:00:00+00:00'

    Contract 6.0.

    Parameters:
        rrule: the rule as in RFC 5545. Without DTSTART it counts from 1 January 2020.
        timezone: the IANA name of the time zone.
        catchup: as in `Timetable`.

    Raises:
        InvalidTimetable: the rule cannot be read, or the time zone is unknown.
    """

    kind = "rrule"
    rrule: str
    timezone: str = "UTC"
    _clock: Recurrence = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
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


@dataclass(frozen=True)
class PartitionedAtRuntime(Timetable):
    """A timetable without times: a person or a program starts each run with a partition key.

    >>> from assetflow import flow
    >>> from assetflow.timetables import PartitionedAtRuntime
    >>> @flow(schedule=PartitionedAtRuntime())
    ... def load(partition_key: str | None = None): ...

    Contract 5.7.
    """

    kind = "partitioned_at_runtime"
    catchup: MissedTimes = field(default="all", init=False)

    def next_after(self, moment: datetime) -> Tick | None:  # noqa: ARG002
        return None

    def previous_before(self, moment: datetime) -> Tick | None:  # noqa: ARG002
        return None

    def describe(self) -> str:
        return "only when somebody starts it with a partition key"


def _duration(delta: timedelta) -> str:
    total = delta.total_seconds()
    for seconds, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if total >= seconds and total % seconds == 0:
            return unit if total == seconds else f"{total / seconds:g} {unit}s"
    return f"{total:g} seconds"


def timetable_from_json(value: Mapping[str, object]) -> Timetable:
    """Return the timetable that `as_json` wrote.

    Raises:
        InvalidTimetable: the kind is unknown, or does not have these options.
    """
    options = {name: option for name, option in value.items() if name != "kind"}
    make = _KINDS.get(str(value.get("kind")))
    if make is None:
        raise InvalidTimetable(
            f"There is no timetable of the kind {value.get('kind')!r}", fix=f"Known kinds: {', '.join(_KINDS)}."
        )
    try:
        return make(**options)
    except (TypeError, ValueError) as cause:
        if isinstance(cause, InvalidTimetable):
            raise
        raise InvalidTimetable(f"The timetable {dict(value)!r} cannot be read: {cause}") from cause


def _delta_from_json(*, seconds: float, start: str | None = None, **options: Any) -> DeltaTriggerTimetable:
    first = None if start is None else datetime.fromisoformat(start)
    return DeltaTriggerTimetable(timedelta(seconds=seconds), first, **options)


_KINDS: dict[str, Callable[..., Timetable]] = {
    "cron": CronTriggerTimetable,
    "cron_partition": CronPartitionTimetable,
    "delta": _delta_from_json,
    "rrule": RRuleTimetable,
    "partitioned_at_runtime": PartitionedAtRuntime,
}


def zone_of(timetable: Timetable) -> str:
    """Return the time zone on whose wall clock a timetable goes: UTC for intervals."""
    with_zone = isinstance(timetable, _CronTimetable | RRuleTimetable)
    return timetable.timezone if with_zone else "UTC"


def times_in_words(timetable: Timetable, *, known_zone: str = "") -> str:
    """Return the times of a timetable: "06:00 (Europe/Berlin)", "06:00 on Monday (UTC)".

    Parameters:
        known_zone: a time zone that readers have seen already, so that it is left out.
    """
    words = timetable.describe().replace(" every day (", " (")
    zone = f" ({zone_of(timetable)})"
    if known_zone == zone_of(timetable):
        words = words.removesuffix(zone)
    return words.removeprefix("at ") if words.startswith("at ") else f"the latest time {words}"
