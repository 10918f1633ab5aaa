"""Events: one recorded update of one asset, and where it came from (contract chapter 2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from operator import attrgetter
from typing import Literal, cast
from uuid import UUID, uuid5

from assetflow.core.assets import Asset
from assetflow.errors import InvalidEvent

_NAMESPACE = UUID("6f0c1a52-6a0e-5a55-9a5e-1f5f3d2b7c11")

OriginKind = Literal["task", "api", "cli", "prefect", "watcher"]


@dataclass(frozen=True)
class SourceTaskRun:
    """The Prefect task run that made an event."""

    id: UUID
    name: str = ""


@dataclass(frozen=True)
class SourceFlowRun:
    """The Prefect flow run that an event comes from (7.3).

    `data_interval_start` and `data_interval_end` are the previous and the own time of the run's time schedule,
    in UTC; none for a run without one. `parameters` is none when they were too large to travel with the event.
    """

    id: UUID
    name: str = ""
    flow_id: UUID | None = None
    flow_name: str = ""
    deployment_id: UUID | None = None
    deployment_name: str = ""
    parameters: Mapping[str, object] | None = None
    scheduled_time: datetime | None = None
    data_interval_start: datetime | None = None
    data_interval_end: datetime | None = None


@dataclass(frozen=True)
class Origin:
    """Who made an event: a task, the API, the command line, a Prefect event, a watcher.

    Attributes:
        traceparent: the span in which it was made, as W3C writes it; empty without tracing.
    """

    kind: OriginKind
    task_run: SourceTaskRun | None = None
    flow_run: SourceFlowRun | None = None
    by: str = ""
    traceparent: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class AssetEvent:
    """One update of one asset. Equal when the ids are.

    Attributes:
        id: the same id twice is one event (2.2).
        asset: name, group and extra as the producer declared them (7.3).
        occurred: the producer's clock, UTC.
        extra: exactly what the task said, a JSON object (2.3).
        partition_key: the key of the partition that was updated, or none.
        aliases: the aliases that the event came through, sorted.
        metrics: what was measured while publishing: rows, bytes, files, seconds.
        code_version, data_version: reserved for chapter 8.
        inputs: URI to the newest sequence known when the task started, for inlets and triggering assets (8).
        sequence, recorded: place and time in the ledger; none until it is recorded.
    """

    id: UUID
    asset: Asset
    occurred: datetime
    origin: Origin
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    partition_key: str | None = None
    aliases: tuple[str, ...] = ()
    metrics: Mapping[str, int | float] = field(default_factory=dict[str, "int | float"])
    code_version: str | None = None
    data_version: str | None = None
    inputs: Mapping[str, int] = field(default_factory=dict[str, int])
    sequence: int | None = None
    recorded: datetime | None = None

    @property
    def uri(self) -> str:
        return self.asset.uri

    @property
    def timestamp(self) -> datetime:
        """When the update occurred, by the producer's clock, UTC (Airflow's name)."""
        return self.occurred

    @property
    def source_task_run(self) -> SourceTaskRun | None:
        return self.origin.task_run

    @property
    def source_flow_run(self) -> SourceFlowRun | None:
        return self.origin.flow_run

    def in_ledger(self, sequence: int, recorded: datetime) -> AssetEvent:
        """The event with its place and time in the ledger."""
        # What `dataclasses.replace` does, only quicker: each event is copied once.
        placed = object.__new__(AssetEvent)
        for keep, value in zip(_KEEP, (*_WITHOUT_PLACE(self), sequence, recorded), strict=True):
            keep(placed, value)
        return placed

    def __getstate__(self) -> dict[str, object]:
        # By name, so that what another version of assetflow pickled can be read.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, AssetEvent) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)


_PLACE = ("sequence", "recorded")
_COPIED = [each.name for each in fields(AssetEvent) if each.name not in _PLACE]
_WITHOUT_PLACE: Callable[[AssetEvent], tuple[object, ...]] = attrgetter(*_COPIED)
_KEEP: list[Callable[[AssetEvent, object], None]] = [getattr(AssetEvent, name).__set__ for name in (*_COPIED, *_PLACE)]


@dataclass(frozen=True)
class Recording:
    """All events of one task run, or of one call: recorded in one transaction, followed by one pass (4.3)."""

    id: UUID
    events: tuple[AssetEvent, ...]


def recording_id(task_run_id: UUID | str) -> UUID:
    """The id of a task run's recording; the same for each attempt and each delivery."""
    return uuid5(_NAMESPACE, f"recording|{task_run_id}")


def event_id(
    task_run_id: UUID | str,
    uri: str,
    partition_key: str | None,
    extra: Mapping[str, object],
    *,
    aliased: bool = False,
) -> UUID:
    """The id of an event that a task makes: the same for each attempt that says the same (2.1).

    Parameters:
        aliased: whether it came through aliases; an asset that is an outlet too makes an event of its own.
    """
    kind = "alias-event" if aliased else "event"
    return uuid5(_NAMESPACE, "|".join((kind, str(task_run_id), uri, partition_key or "", canonical_json(extra))))


def canonical_json(value: object) -> str:
    """JSON text that is the same for equal values: keys sorted, no white space, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain)


def check_extra(extra: object, *, where: str = "") -> dict[str, object]:
    """A copy of an extra as plain JSON data; none is `{}`.

    Raises:
        InvalidEvent: it is no object, or holds something that JSON has no form for (2.2, 2.3).
    """
    if extra is None:
        return {}
    if not isinstance(extra, Mapping):
        raise InvalidEvent(
            f"extra is a {type(extra).__name__}, not a JSON object", where=where, rule="2.2", fix='Write {"rows": 1}'
        )
    try:
        text = json.dumps(dict(cast("Mapping[object, object]", extra)), allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEvent(
            f"extra is not JSON: {error}",
            where=where,
            rule="2.2",
            fix="Use text, numbers, true, false, none, lists and objects with text keys only",
        ) from error
    return cast("dict[str, object]", json.loads(text))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    raise TypeError(f"{value!r} is a {type(value).__name__}")
