"""Windows: the parts of a period or of a category (contract 5.1).

Time windows work with naive wall times, as in Airflow: each day has 24 hours here. The mapper that writes the keys
gives a skipped hour the same key as the next one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, cast

from assetflow.errors import InvalidPartition, MappingError, not_a


class Direction(StrEnum):
    """The direction of a window: the period that starts at the key, or the one that ends at it."""

    FORWARD = "forward"
    BACKWARD = "backward"


class Window(ABC):
    """The base class of windows: the parts of a period or of a category.

    `Window.Direction` is the direction of a window of time. Contract 5.1.
    """

    Direction: ClassVar = Direction
    kind: ClassVar[str]

    @abstractmethod
    def describe(self) -> str:
        """Return the window in words."""

    @abstractmethod
    def as_json(self) -> object:
        """Return plain JSON values, which `window_from_json` reads back."""


@dataclass(frozen=True, kw_only=True)
class TimeWindow(Window):
    """The base class of windows of time.

    Parameters:
        direction: `Window.Direction.FORWARD`: the period that starts at the key. `Window.Direction.BACKWARD`: the
            period that ends at the key, without its beginning and with its end.

    Raises:
        InvalidPartition: the direction is neither of the two.
    """

    direction: Direction = Direction.FORWARD
    parts_in_words: ClassVar[str]

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "direction", Direction(self.direction))
        except ValueError as cause:
            raise InvalidPartition(
                f"A window cannot lie {self.direction!r}", fix='Write "forward" or "backward".', rule="5.1"
            ) from cause

    @abstractmethod
    def starts(self, start: datetime) -> tuple[datetime, ...]:
        """Return the naive wall times at which the parts start.

        Parameters:
            start: the wall time in the key, without a time zone.

        Raises:
            MappingError: the window is a month or longer, and `start` is not on day 1.
        """

    def describe(self) -> str:
        which = "from it on" if self.direction is Direction.FORWARD else "up to it"
        return f"{self.parts_in_words} {which}"

    def as_json(self) -> object:
        if self.direction is Direction.FORWARD:
            return self.kind
        return {"kind": self.kind, "direction": str(self.direction)}


class HourWindow(TimeWindow):
    """The 60 minutes of an hour.

    >>> from assetflow.partitions import HourWindow, RollupMapper, StartOfHourMapper
    >>> by_hour = RollupMapper(upstream_mapper=StartOfHourMapper(input_format="%Y-%m-%dT%H:%M"), window=HourWindow())
    >>> sorted(by_hour.awaited("2026-03-14T15"))[:2]
    ['2026-03-14T15:00', '2026-03-14T15:01']

    Contract 5.1.

    Parameters:
        direction: `Window.Direction.FORWARD`: the period that starts at the key. `Window.Direction.BACKWARD`: the
            period that ends at the key, without its beginning and with its end.

    Raises:
        InvalidPartition: the direction is neither of the two.
    """

    kind = "hour"
    parts_in_words = "60 minutes"

    def starts(self, start: datetime) -> tuple[datetime, ...]:
        return _steps(start, timedelta(minutes=1), 60, self.direction)


class DayWindow(TimeWindow):
    """The 24 hours of a day, also on the days on which clocks change.

    >>> from assetflow.partitions import DayWindow, RollupMapper, StartOfDayMapper
    >>> by_day = RollupMapper(upstream_mapper=StartOfDayMapper(input_format="%Y-%m-%dT%H"), window=DayWindow())
    >>> sorted(by_day.awaited("2026-03-14"))[:2]
    ['2026-03-14T00', '2026-03-14T01']

    Parameters and errors are those of `HourWindow`. Contract 5.1.
    """

    kind = "day"
    parts_in_words = "24 hours"

    def starts(self, start: datetime) -> tuple[datetime, ...]:
        return _steps(start, timedelta(hours=1), 24, self.direction)


class WeekWindow(TimeWindow):
    """The 7 days of a week.

    >>> from assetflow.partitions import WeekWindow, RollupMapper, StartOfWeekMapper
    >>> by_week = RollupMapper(upstream_mapper=StartOfWeekMapper(input_format="%Y-%m-%d"), window=WeekWindow())
    >>> sorted(by_week.awaited("2026-03-09 (W11)"))[:2]
    ['2026-03-09', '2026-03-10']

    Parameters and errors are those of `HourWindow`. Contract 5.1.
    """

    kind = "week"
    parts_in_words = "7 days"

    def starts(self, start: datetime) -> tuple[datetime, ...]:
        return _steps(start, timedelta(days=1), 7, self.direction)


class MonthWindow(TimeWindow):
    """The 28 to 31 days of a month.

    >>> from assetflow.partitions import MonthWindow, RollupMapper, StartOfMonthMapper
    >>> by_month = RollupMapper(upstream_mapper=StartOfMonthMapper(input_format="%Y-%m-%d"), window=MonthWindow())
    >>> len(by_month.awaited("2026-02"))
    28

    Parameters and errors are those of `HourWindow`. Contract 5.1.
    """

    kind = "month"
    parts_in_words = "the days of one month"

    def starts(self, start: datetime) -> tuple[datetime, ...]:
        _need_day_one(start, self.kind)
        forward = self.direction is Direction.FORWARD
        first, end = (start, _month(start, 1)) if forward else (_month(start, -1), start)
        return _steps(start, timedelta(days=1), (end - first).days, self.direction)


class QuarterWindow(TimeWindow):
    """The 3 months of a quarter.

    >>> from assetflow.partitions import QuarterWindow, RollupMapper, StartOfQuarterMapper
    >>> by_quarter = RollupMapper(upstream_mapper=StartOfQuarterMapper(input_format="%Y-%m"), window=QuarterWindow())
    >>> sorted(by_quarter.awaited("2026-Q1"))
    ['2026-01', '2026-02', '2026-03']

    Parameters and errors are those of `HourWindow`. Contract 5.1.
    """

    kind = "quarter"
    parts_in_words = "3 months"

    def starts(self, start: datetime) -> tuple[datetime, ...]:
        return _months(start, 3, self.kind, self.direction)


class YearWindow(TimeWindow):
    """The 12 months of a year.

    >>> from assetflow.partitions import YearWindow, RollupMapper, StartOfYearMapper
    >>> by_year = RollupMapper(upstream_mapper=StartOfYearMapper(input_format="%Y-%m"), window=YearWindow())
    >>> len(by_year.awaited("2026"))
    12

    Parameters and errors are those of `HourWindow`. Contract 5.1.
    """

    kind = "year"
    parts_in_words = "12 months"

    def starts(self, start: datetime) -> tuple[datetime, ...]:
        return _months(start, 12, self.kind, self.direction)


@dataclass(frozen=True)
class SegmentWindow(Window):
    """A fixed set of keys, such as regions.

    >>> from assetflow.partitions import FixedKeyMapper, RollupMapper, SegmentWindow
    >>> world = RollupMapper(upstream_mapper=FixedKeyMapper("world"), window=SegmentWindow(["us", "eu"]))
    >>> sorted(world.awaited("world"))
    ['eu', 'us']

    Parameters:
        segments: the keys, at least one; duplicates count once. Contract 5.1.

    Raises:
        InvalidPartition: there are no keys, or one is not a text or is empty.
    """

    segments: Sequence[str]
    kind: ClassVar[str] = "segment"

    def __post_init__(self) -> None:
        segments = cast(object, self.segments)
        values = list(cast("Iterable[object]", segments)) if isinstance(segments, Iterable) else []
        if isinstance(segments, str) or not values or not all(isinstance(x, str) and x for x in values):
            raise InvalidPartition(
                f"A segment window cannot be made of {segments!r}",
                fix='Give at least one key, each a text: SegmentWindow(["us", "eu"]).',
                rule="5.1",
            )
        object.__setattr__(self, "segments", tuple(dict.fromkeys(values)))

    def describe(self) -> str:
        return f"the keys {', '.join(self.segments)}"

    def as_json(self) -> object:
        return {"kind": self.kind, "segments": list(self.segments)}


def check_window(value: object) -> None:
    """Refuse a value that is not a window.

    Raises:
        InvalidPartition: the value is not a window, or is a class of them without parentheses.
    """
    if not isinstance(value, Window):
        raise not_a(InvalidPartition, value, "a window", "Give a window such as DayWindow()", rule="5.1")


TIME_WINDOWS: dict[str, type[TimeWindow]] = {
    window.kind: window for window in (HourWindow, DayWindow, WeekWindow, MonthWindow, QuarterWindow, YearWindow)
}


def window_from_json(value: object) -> Window:
    """Return the window that `as_json` wrote.

    Parameters:
        value: `"day"`, `{"kind": "day", "direction": "backward"}` or `{"kind": "segment", "segments": [..]}`.

    Raises:
        InvalidPartition: the value is not a window.
    """
    options: dict[str, object] = {"kind": value} if isinstance(value, str) else {}
    if isinstance(value, dict):
        options = dict(cast("dict[str, object]", value))
    kind = options.pop("kind", None)
    try:
        if kind == SegmentWindow.kind:
            return SegmentWindow(**cast("dict[str, list[str]]", options))
        return TIME_WINDOWS[cast(str, kind)](**cast("dict[str, Direction]", options))
    except (KeyError, TypeError) as cause:
        raise InvalidPartition(
            f"{value!r} is not a window",
            fix=f'Write one of {", ".join(TIME_WINDOWS)}, or {{"kind": "week", "direction": "backward"}}, '
            'or {"kind": "segment", "segments": ["us", "eu"]}.',
            rule="5.1",
        ) from cause


def _steps(anchor: datetime, step: timedelta, count: int, direction: Direction) -> tuple[datetime, ...]:
    first = anchor if direction is Direction.FORWARD else anchor - (count - 1) * step
    return tuple(first + number * step for number in range(count))


def _months(anchor: datetime, count: int, kind: str, direction: Direction) -> tuple[datetime, ...]:
    _need_day_one(anchor, kind)
    first = 0 if direction is Direction.FORWARD else 1 - count
    return tuple(_month(anchor, first + number) for number in range(count))


def _month(start: datetime, months: int) -> datetime:
    years, month = divmod(start.month - 1 + months, 12)
    return start.replace(year=start.year + years, month=month + 1)


def _need_day_one(start: datetime, kind: str) -> None:
    if start.day != 1:
        raise MappingError(
            f"A {kind} window starts on day 1 of a month, not on {start:%Y-%m-%d}",
            fix="Use an upstream mapper of months, quarters or years with it.",
            rule="5.1",
        )
