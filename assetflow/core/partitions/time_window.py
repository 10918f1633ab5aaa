"""A mapper between periods of time, such as the 24 hours of a day (contract 8.3); and all mappers from JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

from assetflow.core.partitions.base import AllKeysMapper, KeysMapper, LastMapper, PartitionMapper, window_of
from assetflow.core.partitions.mappers import (
    AllowedKeyMapper,
    ChainMapper,
    FixedKeyMapper,
    IdentityMapper,
    ProductMapper,
    StaticMapper,
)
from assetflow.core.partitions.rollup import FanOutMapper, RollupMapper, policy_from_json
from assetflow.core.partitions.temporal import TEMPORAL_MAPPERS, TemporalMapper
from assetflow.core.partitions.windows import window_from_json
from assetflow.core.time.cron import find_zone, first_instant
from assetflow.errors import InvalidPartition, MappingError

_RULE = "8.3"
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}


class Periods:
    """The hours, days … or years of a time zone, and how their keys are written; a period is its start, in UTC.

    Parameters:
        writer: the mapper of the period, which writes its keys in its output format.
    """

    def __init__(self, writer: TemporalMapper) -> None:
        self._writer = writer
        self._zone = ZoneInfo(writer.timezone)

    def start_of(self, moment: datetime) -> datetime:
        """Return the start of the period in which a moment lies."""
        local = moment.astimezone(self._zone)
        start = self._writer.start_of(local.replace(tzinfo=None))
        if self._writer.kind == "hour":
            # In real time, because a repeated hour is two hours.
            return (moment - (local.replace(tzinfo=None) - start)).astimezone(UTC)
        return first_instant(start, self._zone)

    def shifted(self, start: datetime, periods: int) -> datetime:
        """Return the start of the period that many periods later; earlier if the number is negative."""
        kind = self._writer.kind
        if kind == "hour":
            return self.start_of(start + timedelta(hours=periods))
        wall = start.astimezone(self._zone).replace(tzinfo=None)
        if kind in _DAYS:
            return first_instant(wall + timedelta(days=_DAYS[kind] * periods), self._zone)
        years, month = divmod(wall.month - 1 + _MONTHS[kind] * periods, 12)
        return first_instant(wall.replace(year=wall.year + years, month=month + 1), self._zone)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the periods that overlap a stretch of time, in order."""
        period = self.start_of(start)
        while period < end:
            yield period
            period = self.shifted(period, 1)

    def read(self, key: str) -> datetime:
        """Return the period of a key; of an hour that is written like another one, the first.

        Raises:
            MappingError: the key does not have the format, or its period leaves the calendar.
        """
        try:
            time = self._writer.parse_target(key)
        except (ValueError, OverflowError, re.error) as cause:
            raise MappingError(
                f"The partition key {key!r} does not have the format {self._writer.output_format!r}",
                fix=f"Write the key of the {self._writer.kind} in that format, or change the format of the mapper.",
                rule="5.4",
            ) from cause
        # In UTC, the first hours of the year 1 in Berlin lie before it.
        with window_of(repr(key)):
            return self.start_of(time if time.tzinfo is not None else first_instant(time, self._zone))

    def write(self, start: datetime) -> str:
        """Return the key of a period."""
        return self._writer.write_part(start.astimezone(self._zone))


@dataclass(frozen=True)
class TimeWindowMapper(PartitionMapper):
    """A mapper by time: a target reads the upstream periods that overlap its own period, or a window around it.

    >>> from assetflow.partitions import TimeWindowMapper
    >>> by_day = TimeWindowMapper("hour", "day")
    >>> len(by_day.awaited("2026-03-14")), by_day.to_downstream("2026-03-14T15")
    (24, ('2026-03-14',))
    >>> last_three_days = TimeWindowMapper("day", "day", start_offset=-2)
    >>> last_three_days.awaited("2026-03-14")
    ('2026-03-12', '2026-03-13', '2026-03-14')

    Contract 8.3. Each real hour is one key; two hours that are written alike are one key.

    Parameters:
        upstream, downstream: the periods of the keys: "hour", "day", "week", "month", "quarter" or "year".
        start_offset, end_offset: move the beginning and the end of the window by that many target periods.
        upstream_format, downstream_format: how the keys are written, as in `strftime`; by default as the mapper of the
            period writes them.
        timezone: the IANA name of the time zone whose periods count.
        first: the first upstream key that there is; a target does not wait for keys before it. `None`: all are awaited.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: a period, a format or the time zone is unknown, an offset is not a whole number, the window
            ends before it begins, or `first` does not have the format.
    """

    upstream: str
    downstream: str
    _: KW_ONLY
    start_offset: int = 0
    end_offset: int = 0
    upstream_format: str = ""
    downstream_format: str = ""
    timezone: str = "UTC"
    first: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        find_zone(self.timezone, InvalidPartition, rule=_RULE)
        for option in ("start_offset", "end_offset"):
            value = cast(object, getattr(self, option))
            if not isinstance(value, int) or isinstance(value, bool):
                raise InvalidPartition(f"{option} is {value!r}", fix="Give a whole number of periods.", rule=_RULE)
        if self.start_offset > self.end_offset:
            raise InvalidPartition(
                f"The window ends {self.end_offset} periods after the target and begins {self.start_offset} after it",
                fix="Give an end_offset that is not below start_offset.",
                rule=_RULE,
            )
        self._check_keys()

    def _check_keys(self) -> None:
        periods = self._upstream
        assert self._downstream
        if self.first is not None:
            try:
                periods.read(self.first)
            except (MappingError, TypeError) as cause:
                raise InvalidPartition(
                    f"first is {self.first!r}, which is not a key of this mapper",
                    fix="Give the first upstream key that there is.",
                    rule=_RULE,
                ) from cause

    @property
    def fans_out(self) -> bool:
        return True

    @property
    def ends_before_target(self) -> bool:
        """True if a target reads only earlier periods of the same length, so that it may read its own asset.

        Contract 8.10.
        """
        return self.upstream == self.downstream and self.end_offset < 0

    def map_key(self, key: str) -> list[str]:
        upstream, downstream = self._upstream, self._downstream
        start = upstream.read(key)
        with window_of(repr(key)):
            last = upstream.shifted(start, 1) - timedelta(microseconds=1)
            first_target = downstream.shifted(downstream.start_of(start), -self.end_offset)
            last_target = downstream.shifted(downstream.start_of(last), -self.start_offset)
            targets = downstream.between(first_target, downstream.shifted(last_target, 1))
            return [downstream.write(target) for target in targets]

    def awaited(self, target_key: str) -> tuple[str, ...]:
        """Return the upstream keys that a target reads and waits for, in order of time, without those before `first`.

        Raises:
            MappingError: the target key does not have the format.
        """
        upstream, downstream = self._upstream, self._downstream
        target = downstream.read(target_key)
        with window_of(repr(target_key)):
            start = downstream.shifted(target, self.start_offset)
            end = downstream.shifted(target, self.end_offset + 1)
            first = start if self.first is None else max(start, upstream.read(self.first))
            return tuple(dict.fromkeys(upstream.write(period) for period in upstream.between(first, end)))

    def describe(self) -> str:
        moved = f", from {self.start_offset} to {self.end_offset}" if self.start_offset or self.end_offset else ""
        zone = "" if self.timezone == "UTC" else f" ({self.timezone})"
        return f"each {self.upstream} of the {self.downstream}{moved}{zone}"

    def as_json(self) -> object:
        formats = {"upstream_format": "", "downstream_format": "", "first": None, "timezone": "UTC"}
        options = self.unusual(start_offset=0, end_offset=0, **formats)
        return {
            "time_window": {"upstream": self.upstream, "downstream": self.downstream} | options | self.limit_as_json()
        }

    @property
    def _upstream(self) -> Periods:
        return _periods("upstream", self.upstream, self.upstream_format, self.timezone)

    @property
    def _downstream(self) -> Periods:
        return _periods("downstream", self.downstream, self.downstream_format, self.timezone)


def _periods(option: str, kind: object, key_format: str, timezone: str) -> Periods:
    if not isinstance(kind, str) or kind not in TEMPORAL_MAPPERS:
        raise InvalidPartition(f"{option} is {kind!r}", fix=f"Write one of {', '.join(TEMPORAL_MAPPERS)}.", rule=_RULE)
    return Periods(TEMPORAL_MAPPERS[kind](timezone=timezone, output_format=key_format))


_LIMIT = "max_downstream_keys"

Options = dict[str, Any]


def mapper_from_json(value: object) -> PartitionMapper:
    """Return the mapper of a JSON value: `"day"`, `{"day": {"timezone": "Europe/Berlin"}}`, `{"rollup": {..}}`.

    `max_downstream_keys` is one of the options of a mapper, or is written beside the name of a mapper without options.

    Raises:
        InvalidPartition: the value is not a mapper, or the mapper refuses one of its options.
    """
    kind, options = _kind_and_options(value)
    try:
        return _READERS[kind](options)
    except (TypeError, KeyError) as cause:
        raise InvalidPartition(
            f"The mapper {value!r} cannot be read: {cause}", fix="Check the names of its options.", rule="5.1"
        ) from cause


def _kind_and_options(value: object) -> tuple[str, Options]:
    """Return the name of a mapper and its options; a value in place of the options is the option `""`."""
    entry = {value: cast(object, {})} if isinstance(value, str) else value
    if isinstance(entry, Mapping):
        entries = dict(cast("Mapping[str, object]", entry))
        limit = {_LIMIT: entries.pop(_LIMIT)} if _LIMIT in entries else {}
        kind = next(iter(entries), "")
        if len(entries) == 1 and kind in _READERS and (not isinstance(value, str) or kind in PLAIN_KINDS):
            given = entries[kind]
            options = dict(cast("Mapping[str, object]", given)) if isinstance(given, Mapping) else {"": given}
            return kind, options | limit
    raise InvalidPartition(
        f"{value!r} is not a partition mapper", fix=f"Write one of {', '.join(_READERS)}, with its options.", rule="5.1"
    )


def _temporal(kind: str) -> Callable[[Options], PartitionMapper]:
    return lambda options: TEMPORAL_MAPPERS[kind](**options)


def _members(options: Options) -> list[PartitionMapper]:
    members = options.pop("") if "" in options else options.pop("mappers")
    if not isinstance(members, list):
        raise TypeError("a list of mappers is needed")
    return [mapper_from_json(member) for member in cast("list[object]", members)]


def _rollup(options: Options) -> PartitionMapper:
    upstream, window = mapper_from_json(options.pop("upstream")), window_from_json(options.pop("window"))
    policy = policy_from_json(options.pop("wait", "all"))
    return RollupMapper(upstream_mapper=upstream, window=window, wait_policy=policy, **options)


def _fan_out(options: Options) -> PartitionMapper:
    upstream, window = mapper_from_json(options.pop("upstream")), window_from_json(options.pop("window"))
    downstream = mapper_from_json(options.pop("downstream")) if "downstream" in options else None
    return FanOutMapper(upstream_mapper=upstream, window=window, downstream_mapper=downstream, **options)


def _static(options: Options) -> PartitionMapper:
    limit = options.pop(_LIMIT, None)
    inner = options.get("table")
    table = cast("Options", inner) if len(options) == 1 and isinstance(inner, Mapping) else options
    return StaticMapper(table, max_downstream_keys=limit)


def _value(options: Options) -> list[Any]:
    return [options.pop("")] if "" in options else []


_READERS: dict[str, Callable[[Options], PartitionMapper]] = {
    "identity": lambda options: IdentityMapper(**options),
    **{kind: _temporal(kind) for kind in TEMPORAL_MAPPERS},
    "allowed": lambda options: AllowedKeyMapper(options.pop(""), **options),
    "fixed": lambda options: FixedKeyMapper(options.pop(""), **options),
    "product": lambda options: ProductMapper(*_members(options), **options),
    "chain": lambda options: ChainMapper(*_members(options), **options),
    "rollup": _rollup,
    "fanout": _fan_out,
    "time_window": lambda options: TimeWindowMapper(**options),
    "static": _static,
    "all_keys": lambda options: AllKeysMapper(**options),
    "last": lambda options: LastMapper(*_value(options), **options),
    "keys": lambda options: KeysMapper(*_value(options), **options),
}
MAPPER_KINDS = tuple(_READERS)
"""The names of all mappers in JSON."""
PLAIN_KINDS = ("identity", *TEMPORAL_MAPPERS)
"""Those that may stand alone, without options."""
