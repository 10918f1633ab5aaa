"""Temporal mappers: a key that is a time becomes the key of the hour, day … year that it lies in (contract 5.1)."""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, cast
from zoneinfo import ZoneInfo

from assetflow.core.partitions.base import PartitionMapper, check_directives, check_format, check_readable, read_numbers
from assetflow.core.time.cron import find_zone, last_local
from assetflow.errors import InvalidPartition, MappingError

DEFAULT_INPUT_FORMAT = "%Y-%m-%dT%H:%M:%S"

# A time for examples in errors. No two of its parts are equal.
_EXAMPLE = datetime(2026, 3, 14, 15, 9, 26)  # noqa: DTZ001


@dataclass(frozen=True, kw_only=True)
class TemporalMapper(PartitionMapper):
    """The base class of mappers from a time to the start of its period.

    Parameters:
        timezone: the IANA name of the time zone whose periods count. A key without an offset is a time of this zone: of
            a repeated time the second counts, a skipped time moves on by the gap. A key with an offset (%z) is
            converted.
        input_format: how upstream keys are written, as in `strptime`.
        output_format: how target keys are written, as in `strftime`; each mapper has a default.

    Raises:
        InvalidPartition: the time zone is unknown, or a format is not a text.
    """

    timezone: str = "UTC"
    input_format: str = DEFAULT_INPUT_FORMAT
    output_format: str = ""

    kind: ClassVar[str]
    default_output_format: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        find_zone(self.timezone, InvalidPartition, rule="5.1")
        object.__setattr__(self, "output_format", self.output_format or self.default_output_format)
        for option, text in (("input_format", self.input_format), ("output_format", self.output_format)):
            if not isinstance(cast(object, text), str) or not text:
                raise InvalidPartition(
                    f"The {option} of a {self.kind} mapper is {text!r}",
                    fix=f"Give a text such as {self.default_output_format!r}.",
                    rule="5.1",
                )

    def check_formats(self) -> None:
        """Refuse formats with which no key can be read or written.

        Raises:
            InvalidPartition: a format has an unknown directive, or no time can be read with it.
        """
        check_readable(self.input_format, "input_format")
        check_directives(self.output_format, "output_format")

    @abstractmethod
    def start_of(self, time: datetime) -> datetime:
        """Return the start of the period in which a time lies, on the same wall clock."""

    def map_key(self, key: str) -> tuple[str]:
        try:
            start = self.start_of(self._read(key))
        except (ValueError, OverflowError, re.error) as cause:
            raise MappingError(
                f"The partition key {key!r} does not have the format {self.input_format!r}",
                fix=f"Write it as in {self._example(self.input_format)!r}, or change input_format of the mapper.",
                rule="5.4",
            ) from cause
        return (self.write_part(start),)

    def write_part(self, part: datetime | str) -> str:
        if isinstance(part, str):
            raise MappingError(
                f"The key {part!r} of a segment window is not a time, so the {self.kind} mapper cannot write it",
                fix="Use an IdentityMapper downstream of a segment window.",
                rule="5.4",
            )
        try:
            return self.format_start(part)
        except (ValueError, LookupError, AttributeError) as cause:
            raise MappingError(
                f"The output_format {self.output_format!r} of the {self.kind} mapper cannot be written: {cause!r}",
                fix=f"Use a format such as {self.default_output_format!r}.",
                rule="5.4",
            ) from cause

    def format_start(self, start: datetime) -> str:
        """Return the target key of the period with this start."""
        return start.strftime(self.output_format)

    def read_target(self, target_key: str) -> datetime:
        """Return the naive wall time at which the period of a target key starts.

        Raises:
            MappingError: the key does not have the output format, or the format leaves out a part of the time.
        """
        try:
            start = self.parse_target(target_key)
        except (ValueError, OverflowError, re.error) as cause:
            raise MappingError(
                f"The target key {target_key!r} cannot be read with the format {self.output_format!r}: {cause}",
                fix=f"It should look like {self._example(self.output_format)!r}.",
                rule="5.4",
            ) from cause
        return start if start.tzinfo is None else start.astimezone(self._zone).replace(tzinfo=None)

    def parse_target(self, target_key: str) -> datetime:
        """Return the time in a target key, with its offset if it has one.

        Raises:
            ValueError: the key does not fit the output format.
        """
        return datetime.strptime(target_key, self.output_format)  # noqa: DTZ007  its wall time is wanted

    def write_upstream(self, wall: datetime) -> str:
        """Return the upstream key of a naive wall time. A skipped time moves on by the gap."""
        return last_local(wall, self._zone).strftime(self.input_format)

    def sample_targets(self) -> tuple[str, ...]:
        """Return a target key to try a window with, or nothing if the mapper cannot read back what it writes."""
        start = self.start_of(last_local(_EXAMPLE, self._zone)).replace(tzinfo=None)
        target_key = self.write_part(start)
        try:
            return (target_key,) if self.read_target(target_key) == start else ()
        except MappingError:
            return ()

    def describe(self) -> str:
        zone = "" if self.timezone == "UTC" else f" ({self.timezone})"
        return f"the {self.kind} of the key{zone}"

    def as_json(self) -> object:
        usual = {"input_format": DEFAULT_INPUT_FORMAT, "output_format": self.default_output_format}
        options = self.limit_as_json() | self.unusual(timezone="UTC", **usual)
        return {self.kind: options} if options else self.kind

    @property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    def _read(self, key: str) -> datetime:
        time = datetime.strptime(key, self.input_format)  # noqa: DTZ007  the zone is given next
        return last_local(time, self._zone) if time.tzinfo is None else time.astimezone(self._zone)

    def _example(self, text: str) -> str:
        return last_local(_EXAMPLE, self._zone).strftime(text).replace("{quarter}", "1")


class StartOfHourMapper(TemporalMapper):
    """A mapper from a time to its hour.

    >>> from assetflow.partitions import StartOfHourMapper
    >>> StartOfHourMapper().to_downstream("2026-03-14T15:09:26")
    ('2026-03-14T15',)

    Contract 5.1.

    Parameters:
        timezone: the IANA name of the time zone whose hours count. A key without an offset is a time of this zone: of a
            repeated time the second counts, a skipped time moves on by the gap. A key with an offset (%z) is converted.
        input_format: how upstream keys are written, as in `strptime`.
        output_format: how target keys are written, as in `strftime`.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: the time zone is unknown, or a format is not a text.
    """

    kind = "hour"
    default_output_format = "%Y-%m-%dT%H"

    def start_of(self, time: datetime) -> datetime:
        return time.replace(minute=0, second=0, microsecond=0)


class StartOfDayMapper(TemporalMapper):
    """A mapper from a time to its day.

    >>> from assetflow.partitions import StartOfDayMapper
    >>> StartOfDayMapper().to_downstream("2026-03-14T15:09:26")
    ('2026-03-14',)
    >>> in_berlin = StartOfDayMapper(timezone="Europe/Berlin", input_format="%Y-%m-%dT%H:%M%z")
    >>> in_berlin.to_downstream("2026-03-14T23:30+0000")
    ('2026-03-15',)

    Parameters and errors are those of `StartOfHourMapper`. Contract 5.1.
    """

    kind = "day"
    default_output_format = "%Y-%m-%d"

    def start_of(self, time: datetime) -> datetime:
        return _midnight(time)


class StartOfWeekMapper(TemporalMapper):
    """A mapper from a time to its week: the Monday, and the number of the ISO week.

    >>> from assetflow.partitions import StartOfWeekMapper
    >>> StartOfWeekMapper().to_downstream("2026-03-14T15:09:26")
    ('2026-03-09 (W11)',)

    Parameters and errors are those of `StartOfHourMapper`. An `output_format` that uses a directive twice is an
    `InvalidPartition` too. Contract 5.1.
    """

    kind = "week"
    default_output_format = "%Y-%m-%d (W%V)"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_format(self.output_format, braces=False)

    def start_of(self, time: datetime) -> datetime:
        return _midnight(time - timedelta(days=time.weekday()))

    def parse_target(self, target_key: str) -> datetime:
        numbers = read_numbers(target_key, self.output_format, braces=False)
        if numbers is None or not {"Y", "m", "d"} <= numbers.keys():
            raise ValueError("year, month and day (%Y, %m, %d) are needed")
        return datetime(numbers["Y"], numbers["m"], numbers["d"])  # noqa: DTZ001


class StartOfMonthMapper(TemporalMapper):
    """A mapper from a time to its month.

    >>> from assetflow.partitions import StartOfMonthMapper
    >>> StartOfMonthMapper().to_downstream("2026-03-14T15:09:26")
    ('2026-03',)

    Parameters and errors are those of `StartOfHourMapper`. Contract 5.1.
    """

    kind = "month"
    default_output_format = "%Y-%m"

    def start_of(self, time: datetime) -> datetime:
        return _midnight(time.replace(day=1))


class StartOfQuarterMapper(TemporalMapper):
    """A mapper from a time to its quarter. In `output_format`, `{quarter}` stands for the number of the quarter.

    >>> from assetflow.partitions import StartOfQuarterMapper
    >>> StartOfQuarterMapper().to_downstream("2026-03-14T15:09:26")
    ('2026-Q1',)

    Parameters and errors are those of `StartOfHourMapper`. An `output_format` that uses a directive twice is an
    `InvalidPartition` too. Contract 5.1.
    """

    kind = "quarter"
    default_output_format = "%Y-Q{quarter}"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_format(self.output_format, braces=True)

    def start_of(self, time: datetime) -> datetime:
        return _midnight(time.replace(month=(time.month - 1) // 3 * 3 + 1, day=1))

    def format_start(self, start: datetime) -> str:
        return start.strftime(self.output_format).format(quarter=(start.month - 1) // 3 + 1)

    def parse_target(self, target_key: str) -> datetime:
        numbers = read_numbers(target_key, self.output_format, braces=True)
        if numbers is None or not {"Y", "quarter"} <= numbers.keys():
            raise ValueError("year and quarter (%Y, {quarter}) are needed")
        return datetime(numbers["Y"], numbers["quarter"] * 3 - 2, 1)  # noqa: DTZ001


class StartOfYearMapper(TemporalMapper):
    """A mapper from a time to its year.

    >>> from assetflow.partitions import StartOfYearMapper
    >>> StartOfYearMapper().to_downstream("2026-03-14T15:09:26")
    ('2026',)

    Parameters and errors are those of `StartOfHourMapper`. Contract 5.1.
    """

    kind = "year"
    default_output_format = "%Y"

    def start_of(self, time: datetime) -> datetime:
        return _midnight(time.replace(month=1, day=1))


TEMPORAL_MAPPERS: dict[str, type[TemporalMapper]] = {
    mapper.kind: mapper
    for mapper in (
        *(StartOfHourMapper, StartOfDayMapper, StartOfWeekMapper),
        *(StartOfMonthMapper, StartOfQuarterMapper, StartOfYearMapper),
    )
}


def _midnight(time: datetime) -> datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0)
