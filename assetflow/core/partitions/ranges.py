"""The partition keys that belong to a range of time, for gaps and backfills."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from assetflow.core.partitions.base import PartitionMapper
from assetflow.core.partitions.mappers import ChainMapper
from assetflow.core.partitions.rollup import FanOutMapper, RollupMapper
from assetflow.core.partitions.temporal import TEMPORAL_MAPPERS, TemporalMapper
from assetflow.core.time.cron import first_instant
from assetflow.errors import InvalidCall, InvalidPartition

# From the finest to the coarsest. Keys that are written to the second may still be those of days.
_FORMATS: tuple[tuple[str, str], ...] = (
    ("%Y-%m-%dT%H:%M:%S", "hour"),
    ("%Y-%m-%dT%H:%M", "hour"),
    ("%Y-%m-%dT%H", "hour"),
    ("%Y-%m-%d %H:%M:%S", "hour"),
    ("%Y-%m-%d", "day"),
    ("%Y%m%d", "day"),
    ("%Y-%m", "month"),
    ("%Y", "year"),
)
_WRITTEN: tuple[tuple[str, timedelta], ...] = (
    ("%Y", timedelta(days=366)),
    ("%Y-%m", timedelta(days=31)),
    ("%Y-%m-%d", timedelta(days=1)),
    ("%Y-%m-%dT%H", timedelta(hours=1)),
    ("%Y-%m-%dT%H:%M", timedelta(minutes=1)),
    ("%Y-%m-%dT%H:%M:%S", timedelta(seconds=1)),
)
# Added to the start of a period, it leads into the next period: longer than any period of the kind, with two hours for
# changes of the clock, and shorter than two.
_BEYOND: dict[str, timedelta] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1, hours=2),
    "week": timedelta(days=7, hours=2),
    "month": timedelta(days=31, hours=2),
    "quarter": timedelta(days=92, hours=2),
    "year": timedelta(days=366, hours=2),
}
MOST_KEYS = 100_000


@dataclass(frozen=True)
class KeySeries:
    """A series of keys: one for each hour, day, week, month, quarter or year of a time zone.

    Attributes:
        writer: the mapper of the period, which writes its keys.
    """

    writer: TemporalMapper

    @classmethod
    def every(cls, every: str, key_format: str = "", timezone: str = "UTC") -> KeySeries:
        """Return the series of a period.

        Parameters:
            every: hour, day, week, month, quarter or year.
            key_format: how the keys are written, as in `strftime`; "" for the format of Airflow's mapper.
            timezone: the IANA name of the time zone.

        Raises:
            InvalidPartition: the period or the time zone is unknown.
        """
        kind = TEMPORAL_MAPPERS.get(every)
        if kind is None:
            raise InvalidPartition(f"there is no period {every!r}", fix=f"Write one of {', '.join(TEMPORAL_MAPPERS)}")
        return cls(kind(timezone=timezone, output_format=key_format))

    def between(self, start: datetime, end: datetime) -> Mapping[str, datetime]:
        """Return the keys of the periods that begin at `start` or later and before `end`, in order.

        An hour that the clock skips has no key, and a repeated one has one key, as producers write them.

        Parameters:
            start, end: naive wall times in the zone of the series.

        Returns:
            Each key with the naive wall time at which its period begins.

        Raises:
            InvalidPartition: there are more than 100,000 keys, or the range leaves the calendar.
            MappingError: the keys cannot be written in the format.
        """
        keys: dict[str, datetime] = {}
        try:
            for wall in self._starts(start, end):
                keys.setdefault(self.writer.write_part(wall), wall)
                if len(keys) > MOST_KEYS:
                    raise InvalidPartition(f"there are more than {MOST_KEYS} keys", fix="Ask for a shorter range")
        except OverflowError as cause:
            raise _leaves_calendar(start, end) from cause
        return keys

    def time_of(self, key: str) -> datetime | None:
        """Return the naive wall time of a key, or `None` if it is not written like the keys of this series."""
        time = _read(key, self.writer.output_format)
        return None if time is None else time.replace(tzinfo=None)

    def describe(self) -> str:
        return f"one key each {self.writer.kind}, written as {self.writer.output_format!r} ({self.writer.timezone})"

    def _starts(self, start: datetime, end: datetime) -> Iterator[datetime]:
        zone = ZoneInfo(self.writer.timezone)
        moment = first_instant(start, zone)
        until = first_instant(end, zone)
        while moment < until:
            wall = moment.astimezone(zone).replace(tzinfo=None)
            begin = self.writer.start_of(wall)
            if begin >= start:
                yield begin
            moment = self._next(moment, begin, zone)

    def _next(self, moment: datetime, begin: datetime, zone: ZoneInfo) -> datetime:
        """Return an instant in the period after this one."""
        beyond = _BEYOND[self.writer.kind]
        if self.writer.kind == "hour":
            # In real time, so that a repeated hour is passed twice.
            return moment + beyond
        return first_instant(self.writer.start_of(begin + beyond), zone)


def read_period(text: str) -> tuple[datetime, datetime]:
    """Return the start and the end of a year, month, day, hour, minute or second, as naive wall times.

    Parameters:
        text: the period, such as 2026, 2026-11, 2026-11-20 or 2026-11-20T05.

    Raises:
        InvalidPartition: the text is not written like any of them, or its period leaves the calendar.
    """
    for key_format, step in _WRITTEN:
        start = _read(text, key_format)
        if start is not None:
            start = start.replace(tzinfo=None)
            try:
                following = start + step
            except OverflowError as cause:
                raise _leaves_calendar(start, text) from cause
            if key_format == "%Y":
                following = following.replace(month=1, day=1)
            elif key_format == "%Y-%m":
                following = following.replace(day=1)
            return start, following
    raise InvalidPartition(f"{text!r} is not a time", fix="Write it as 2026, 2026-11, 2026-11-20 or 2026-11-20T05")


def read_periods(start: str, end: str) -> tuple[datetime, datetime]:
    """Return the start of the first period and the end of the last one, as wall times.

    Raises:
        InvalidPartition: one of them is not a time.
        InvalidCall: the last one is before the first.
    """
    first, last = read_period(start)[0], read_period(end)[1]
    if last <= first:
        raise InvalidCall(f"the range ends with {end}, before it begins with {start}", fix="Exchange them")
    return first, last


def series_of_mapper(mapper: PartitionMapper) -> KeySeries | None:
    """Return the series of the target keys that a mapper writes, or `None` if they are not times."""
    if isinstance(mapper, TemporalMapper):
        # A new mapper, because the format of the upstream keys does not belong to the series.
        return KeySeries.every(mapper.kind, mapper.output_format, mapper.timezone)
    if isinstance(mapper, RollupMapper):
        return series_of_mapper(mapper.upstream_mapper)
    if isinstance(mapper, FanOutMapper):
        return series_of_mapper(mapper.downstream)
    if isinstance(mapper, ChainMapper):
        return series_of_mapper(mapper.mappers[-1])
    return None


def series_of_keys(keys: Iterable[str]) -> KeySeries | None:
    """Return the series to which keys belong by their format, or `None` if they are not times or there are no keys."""
    known = list(keys)
    for key_format, every in _FORMATS if known else ():
        times = [_read(key, key_format) for key in known]
        if all(time is not None for time in times):
            found = [time for time in times if time is not None]
            days_only = every == "hour" and len(found) > 1 and all(not time.hour and not time.minute for time in found)
            return KeySeries.every("day" if days_only else every, key_format)
    return None


def _read(key: str, key_format: str) -> datetime | None:
    try:
        time = datetime.strptime(key, key_format).replace(tzinfo=UTC)
    except ValueError:
        return None
    # `strptime` reads 2026-1-2 as well.
    return time if time.strftime(key_format) == key else None


def _leaves_calendar(start: object, end: object) -> InvalidPartition:
    return InvalidPartition(
        f"the range from {start} to {end} leaves the calendar", fix="Ask for times between the years 2 and 9998"
    )
