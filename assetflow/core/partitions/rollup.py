"""Roll-up and fan-out: one target key for many upstream keys, and many for one (contract 5.1 and 5.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from assetflow.core.partitions.base import PartitionMapper
from assetflow.core.partitions.policies import WaitForAll, WaitPolicy
from assetflow.core.partitions.temporal import (
    StartOfDayMapper,
    StartOfHourMapper,
    StartOfMonthMapper,
    TemporalMapper,
)
from assetflow.core.partitions.windows import SegmentWindow, TimeWindow, Window
from assetflow.errors import InvalidPartition, MappingError

_DOWNSTREAM = {
    "day": StartOfHourMapper,
    "week": StartOfDayMapper,
    "month": StartOfDayMapper,
    "quarter": StartOfMonthMapper,
    "year": StartOfMonthMapper,
}


@dataclass(frozen=True, kw_only=True)
class RollupMapper(PartitionMapper):
    """Waits for the keys of a whole window before its target key may run.

    Parameters:
        upstream_mapper: gives the target key of each upstream key.
        window: which upstream keys make up one target key. Windows of time go with temporal upstream mappers,
            `SegmentWindow` with all others.
        wait_policy: how many of them are needed; all, unless given.

    Raises:
        InvalidPartition: window and upstream mapper do not go together.
    """

    upstream_mapper: PartitionMapper
    window: Window
    wait_policy: WaitPolicy = field(default_factory=WaitForAll)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.window, TimeWindow) != isinstance(self.upstream_mapper, TemporalMapper):
            raise InvalidPartition(
                f"A window of {self.window.describe()} cannot be filled by {self.upstream_mapper.describe()}",
                fix="Windows of time go with StartOf…Mapper upstream, SegmentWindow with all other mappers.",
                rule="5.1",
            )

    @property
    def fans_out(self) -> bool:
        return self.upstream_mapper.fans_out

    def map_key(self, key: str) -> Iterable[str]:
        return self.upstream_mapper.to_downstream(key)

    def awaited(self, target_key: str) -> frozenset[str]:
        """The upstream keys that a target key waits for.

        Raises:
            MappingError: the target key cannot be read, or its window does not start there.
        """
        mapper = self.upstream_mapper
        if not isinstance(mapper, TemporalMapper):
            return frozenset(map(str, _parts(self.window, target_key)))
        start = mapper.read_target(target_key)
        try:
            return frozenset(mapper.write_upstream(wall) for wall in _times(self.window, start))
        except (ValueError, OverflowError) as cause:
            raise _window_fails(target_key, self.window, cause) from cause

    def is_met(self, target_key: str, received: Collection[str]) -> bool:
        """Whether these upstream keys are enough for a target key (5.2).

        Keys that are not awaited do not count; for a target key that cannot be read back nothing is enough.
        """
        try:
            awaited = self.awaited(target_key)
        except MappingError:
            return False
        return self.wait_policy.is_met(len(awaited.intersection(received)), len(awaited))

    def problem(self) -> str | None:
        """Why no target key can ever be complete, with the two formats side by side; None if one can be.

        A window coarser or finer than its mapper, one that lies backward, a format that drops what the window needs,
        segments with different targets: they all end here, for too few of the awaited keys lead to the target key.
        """
        best = ""
        for target_key in self._sample_targets():
            try:
                awaited = self.awaited(target_key)
            except MappingError as error:
                return f"{self._formats()} fails: {error}"
            found = sum(self._leads_to(target_key, key) for key in awaited)
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
        targets: dict[str, None] = {}
        for segment in map(str, _parts(self.window, "")):
            try:
                targets |= dict.fromkeys(mapper.to_downstream(segment))
            except MappingError:
                continue
        return tuple(targets)

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

    def _leads_to(self, target_key: str, key: str) -> bool:
        try:
            return target_key in self.to_downstream(key)
        except MappingError:
            return False


@dataclass(frozen=True, kw_only=True)
class FanOutMapper(PartitionMapper):
    """One upstream key gives a target key for each part of its window.

    Parameters:
        upstream_mapper: finds the period of the upstream key; must give one key.
        window: the parts of that period.
        downstream_mapper: writes each part in its output format. By default hours for a day, days for a week or month,
            months for a quarter or year.

    Raises:
        InvalidPartition: no downstream mapper, and the window has no default.
    """

    upstream_mapper: PartitionMapper
    window: Window
    downstream_mapper: PartitionMapper | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.downstream_mapper is None:
            self._default_downstream()

    @property
    def fans_out(self) -> bool:
        return True

    def map_key(self, key: str) -> Iterable[str]:
        upstream = self.upstream_mapper
        target = upstream.single_target(key)
        start = upstream.read_target(target) if isinstance(upstream, TemporalMapper) else target
        downstream = self.downstream
        try:
            return [downstream.write_part(part) for part in _parts(self.window, start)]
        except (ValueError, OverflowError) as cause:
            if isinstance(cause, MappingError):
                raise
            raise _window_fails(key, self.window, cause) from cause

    def describe(self) -> str:
        return f"{self.upstream_mapper.describe()}, fanned out to {self.window.describe()}"

    def as_json(self) -> object:
        options: dict[str, object] = {"upstream": self.upstream_mapper.as_json(), "window": self.window.as_json()}
        if self.downstream_mapper is not None:
            options["downstream"] = self.downstream_mapper.as_json()
        return {"fanout": options | self.limit_as_json()}

    @property
    def downstream(self) -> PartitionMapper:
        """What writes the target keys."""
        return self.downstream_mapper or self._default_downstream()

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
            f"The key {start!r} is no time, so it has no {window.kind}",
            fix="Use a StartOf…Mapper as the upstream mapper of a window of time.",
            rule="5.4",
        )
    return window.starts(start)


def _window_fails(key: str, window: Window, cause: Exception) -> MappingError:
    if isinstance(cause, MappingError):
        return cause
    return MappingError(
        f"The window of {key!r} ({window.describe()}) leaves the calendar",
        fix="Use a key between the years 2 and 9998.",
        rule="5.4",
    )
