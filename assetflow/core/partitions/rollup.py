"""Roll-up and fan-out: many upstream keys for one target key, and many target keys for one (contract 5.1, 5.2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from assetflow.core.partitions.base import PartitionMapper, check_mapper, targets_or_none, window_of
from assetflow.core.partitions.temporal import StartOfDayMapper, StartOfHourMapper, StartOfMonthMapper, TemporalMapper
from assetflow.core.partitions.windows import SegmentWindow, TimeWindow, Window, check_window
from assetflow.errors import InvalidPartition, MappingError, not_a


class WaitPolicy(ABC):
    """The base class of wait policies: how many of the awaited keys a roll-up needs before it runs. Contract 5.2."""

    @abstractmethod
    def needed(self, awaited: int) -> int:
        """Return how many different keys must be there, of `awaited` ones."""

    @abstractmethod
    def describe(self) -> str:
        """Return the policy in words."""

    @abstractmethod
    def as_json(self) -> object:
        """Return plain JSON values, which `policy_from_json` reads back."""

    def is_met(self, received: int, awaited: int) -> bool:
        """Return True if `received` different awaited keys are enough."""
        return received >= self.needed(awaited)


@dataclass(frozen=True)
class WaitForAll(WaitPolicy):
    """A wait policy that needs every awaited key.

    >>> from assetflow.partitions import WaitForAll
    >>> WaitForAll().needed(24)
    24

    Contract 5.2.
    """

    def needed(self, awaited: int) -> int:
        return awaited

    def describe(self) -> str:
        return "all"

    def as_json(self) -> object:
        return "all"


@dataclass(frozen=True)
class MinimumCount(WaitPolicy):
    """A wait policy that needs some of the awaited keys.

    >>> from assetflow.partitions import MinimumCount
    >>> MinimumCount(20).needed(24), MinimumCount(-2).needed(24)
    (20, 22)

    Contract 5.2.

    Parameters:
        n: at least `n` keys; if it is negative, all but `-n`.

    Raises:
        InvalidPartition: `n` is 0, or not a whole number.
    """

    n: int

    def __post_init__(self) -> None:
        n = cast(object, self.n)
        if not isinstance(n, int) or isinstance(n, bool) or n == 0:
            raise InvalidPartition(
                f"MinimumCount({n!r}) is not a number of keys",
                fix="Give a number above 0 (at least so many keys) or below 0 (all but so many), or use WaitForAll().",
                rule="5.2",
            )

    def needed(self, awaited: int) -> int:
        return self.n if self.n > 0 else max(0, awaited + self.n)

    def describe(self) -> str:
        return f"at least {self.n}" if self.n > 0 else f"all but {-self.n}"

    def as_json(self) -> object:
        return {"min": self.n}


def check_policy(value: object) -> None:
    """Refuse a value that is not a wait policy.

    Raises:
        InvalidPartition: the value is not a wait policy, or is a class of them without parentheses.
    """
    if not isinstance(value, WaitPolicy):
        raise not_a(InvalidPartition, value, "a wait policy", "Give WaitForAll() or MinimumCount(20)", rule="5.2")


def policy_from_json(value: object) -> WaitPolicy:
    """Return the wait policy that `as_json` wrote as `"all"` or `{"min": n}`.

    Raises:
        InvalidPartition: the value is neither.
    """
    if value == "all":
        return WaitForAll()
    if isinstance(value, dict) and list(cast("dict[object, object]", value)) == ["min"]:
        return MinimumCount(cast("dict[str, int]", value)["min"])
    raise InvalidPartition(f"{value!r} is not a wait policy", fix='Write "all" or {"min": 20}.', rule="5.1")


_DOWNSTREAM = {
    "day": StartOfHourMapper,
    "week": StartOfDayMapper,
    "month": StartOfDayMapper,
    "quarter": StartOfMonthMapper,
    "year": StartOfMonthMapper,
}


@dataclass(frozen=True, kw_only=True)
class RollupMapper(PartitionMapper):
    """A mapper that waits for all keys of a window, such as the 24 hours of a day, before the target key runs.

    >>> from assetflow.partitions import DayWindow, RollupMapper, StartOfDayMapper
    >>> by_day = RollupMapper(upstream_mapper=StartOfDayMapper(input_format="%Y-%m-%dT%H"), window=DayWindow())
    >>> by_day.to_downstream("2026-03-14T15"), len(by_day.awaited("2026-03-14"))
    (('2026-03-14',), 24)

    Contract 5.2.

    Parameters:
        upstream_mapper: gives the target key of each upstream key.
        window: the upstream keys that make up one target key. Windows of time go with `StartOf…Mapper`, `SegmentWindow`
            goes with all other mappers.
        wait_policy: how many keys of the window are needed; by default all.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: the window does not go with the upstream mapper.
    """

    upstream_mapper: PartitionMapper
    window: Window
    wait_policy: WaitPolicy = field(default_factory=WaitForAll)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_mapper(self.upstream_mapper)
        check_window(self.window)
        check_policy(self.wait_policy)
        if isinstance(self.window, TimeWindow) != isinstance(self.upstream_mapper, TemporalMapper):
            raise InvalidPartition(
                f"A window of {self.window.describe()} cannot be filled by {self.upstream_mapper.describe()}",
                fix="Windows of time go with StartOf…Mapper upstream, SegmentWindow with all other mappers.",
                rule="5.1",
            )

    @property
    def parts(self) -> tuple[PartitionMapper, ...]:
        return (self.upstream_mapper,)

    @property
    def fans_out(self) -> bool:
        return self.upstream_mapper.fans_out

    def map_key(self, key: str) -> Iterable[str]:
        return self.upstream_mapper.to_downstream(key)

    def awaited(self, target_key: str) -> frozenset[str]:
        """Return the upstream keys that a target key waits for.

        Raises:
            MappingError: the target key cannot be read, or its window does not start there.
        """
        mapper = self.upstream_mapper
        if not isinstance(mapper, TemporalMapper):
            return frozenset(map(str, _parts(self.window, target_key)))
        start = mapper.read_target(target_key)
        with window_of(f"{target_key!r} ({self.window.describe()})"):
            return frozenset(mapper.write_upstream(wall) for wall in _times(self.window, start))

    def is_met(self, target_key: str, received: Collection[str]) -> bool:
        """Return True if these upstream keys are enough for a target key.

        Keys that are not awaited do not count. For a target key that cannot be read, nothing is enough. Contract 5.2.
        """
        try:
            awaited = self.awaited(target_key)
        except MappingError:
            return False
        return self.wait_policy.is_met(len(awaited.intersection(received)), len(awaited))

    def problem(self) -> str | None:
        """Return why no target key can ever be complete, with both key formats, or `None` if one can be.

        Too few of the awaited keys lead to the target key if the window is coarser or finer than its mapper, if it lies
        backward, if a format leaves out what the window needs, or if the segments have different target keys.
        """
        best = ""
        for target_key in self._sample_targets():
            try:
                awaited = self.awaited(target_key)
            except MappingError as error:
                return f"{self._formats()} fails: {error}"
            found = sum(target_key in targets_or_none(self, key) for key in awaited)
            if found >= self.wait_policy.needed(len(awaited)):
                return None
            best = (
                f"waits for {self.wait_policy.describe()} of {len(awaited)} keys such as {min(awaited)!r}, but only "
                f"{found} of them lead to the target key {target_key!r}"
            )
        return f"{self._formats()} {best or 'cannot read back the target keys that it writes'}"

    def _sample_targets(self) -> tuple[str, ...]:
        mapper = self.upstream_mapper
        if isinstance(mapper, TemporalMapper):
            return mapper.sample_targets()
        segments = map(str, _parts(self.window, ""))
        return tuple(dict.fromkeys(target for each in segments for target in targets_or_none(mapper, each)))

    def _formats(self) -> str:
        mapper = self.upstream_mapper
        if not isinstance(mapper, TemporalMapper):
            return f"A roll-up of {mapper.describe()} over {self.window.describe()}"
        return (
            f"A roll-up of {mapper.describe()} over {self.window.describe()} (from {mapper.input_format!r} to "
            f"{mapper.output_format!r})"
        )

    def describe(self) -> str:
        return f"{self.upstream_mapper.describe()}, with {self.wait_policy.describe()} of {self.window.describe()}"

    def as_json(self) -> object:
        wait = self.wait_policy.as_json()
        options: dict[str, object] = {"upstream": self.upstream_mapper.as_json(), "window": self.window.as_json()}
        return {"rollup": options | ({} if wait == "all" else {"wait": wait}) | self.limit_as_json()}


@dataclass(frozen=True, kw_only=True)
class FanOutMapper(PartitionMapper):
    """A mapper that gives a target key for each part of a window: a run for each hour of an updated day.

    >>> from assetflow.partitions import DayWindow, FanOutMapper, StartOfDayMapper
    >>> by_hour = FanOutMapper(upstream_mapper=StartOfDayMapper(input_format="%Y-%m-%d"), window=DayWindow())
    >>> by_hour.to_downstream("2026-03-14")[:2]
    ('2026-03-14T00', '2026-03-14T01')

    Contract 5.1.

    Parameters:
        upstream_mapper: finds the period of the upstream key; it must give one key.
        window: the parts of that period.
        downstream_mapper: writes each part in its output format. By default hours for a day, days for a week or month,
            months for a quarter or year.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: there is no downstream mapper, and the window has no default.
    """

    upstream_mapper: PartitionMapper
    window: Window
    downstream_mapper: PartitionMapper | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_mapper(self.upstream_mapper)
        check_window(self.window)
        check_mapper(self.downstream)

    @property
    def parts(self) -> tuple[PartitionMapper, ...]:
        return (self.upstream_mapper, self.downstream)

    @property
    def fans_out(self) -> bool:
        return True

    def map_key(self, key: str) -> Iterable[str]:
        upstream = self.upstream_mapper
        target = upstream.single_target(key)
        start = upstream.read_target(target) if isinstance(upstream, TemporalMapper) else target
        downstream = self.downstream
        with window_of(f"{key!r} ({self.window.describe()})"):
            return [downstream.write_part(part) for part in _parts(self.window, start)]

    def describe(self) -> str:
        return f"{self.upstream_mapper.describe()}, fanned out to {self.window.describe()}"

    def as_json(self) -> object:
        options: dict[str, object] = {"upstream": self.upstream_mapper.as_json(), "window": self.window.as_json()}
        if self.downstream_mapper is not None:
            options["downstream"] = self.downstream_mapper.as_json()
        return {"fanout": options | self.limit_as_json()}

    @property
    def downstream(self) -> PartitionMapper:
        """The mapper that writes the target keys."""
        return self._default_downstream() if self.downstream_mapper is None else self.downstream_mapper

    def _default_downstream(self) -> PartitionMapper:
        make = _DOWNSTREAM.get(self.window.kind)
        if make is None:
            raise InvalidPartition(
                f"A fan-out to {self.window.describe()} needs a downstream_mapper",
                fix="Give one: its output_format writes the target keys.",
                rule="5.1",
            )
        return make()


def _parts(window: Window, start: datetime | str) -> Iterable[datetime | str]:
    return window.segments if isinstance(window, SegmentWindow) else _times(window, start)


def _times(window: Window, start: datetime | str) -> tuple[datetime, ...]:
    if not isinstance(window, TimeWindow) or isinstance(start, str):
        raise MappingError(
            f"The key {start!r} is not a time, so it has no {window.kind}",
            fix="Use a StartOf…Mapper as the upstream mapper of a window of time.",
            rule="5.4",
        )
    return window.starts(start)
