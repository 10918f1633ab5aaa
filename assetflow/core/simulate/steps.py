"""The actions of a scenario's steps, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from assetflow.core.simulate.conditions import read_asset, read_outlet
from assetflow.core.simulate.consumers import ConsumerSpec, read_consumer
from assetflow.core.simulate.freshness_steps import READERS, STEP_KEYS, FreshnessAction
from assetflow.core.simulate.reading import (
    Deferred,
    as_bool,
    as_choice,
    as_list,
    as_number,
    as_object,
    as_text,
    as_time,
    refuse,
    short,
)
from assetflow.core.values.assets import Asset, Outlet

TASK_STATES = ("completed", "failed", "crashed", "cancelled", "skipped", "cached", "rolled_back", "retrying")


@dataclass(frozen=True)
class EventStep:
    """Record one event."""

    asset: Deferred[Asset]
    extra: object
    partition_key: object
    aliases: tuple[object, ...]
    id: str | None
    data_version: object = None


@dataclass(frozen=True)
class Said:
    """The report of a task on one outlet; on an alias if `alias` is not `None`."""

    alias: str | None
    asset: Deferred[Asset]
    extra: object
    partition_keys: object


@dataclass(frozen=True)
class TaskStep:
    """End a task. Only a completed one makes updates."""

    outlets: tuple[Deferred[Outlet], ...]
    emit: tuple[Said, ...]
    completed: bool
    partition_key: object


@dataclass(frozen=True)
class TickStep:
    """Make one pass over all consumers."""


@dataclass(frozen=True)
class PauseStep:
    consumer: str


@dataclass(frozen=True)
class ResumeStep:
    consumer: str


@dataclass(frozen=True)
class RedeployStep:
    """Deploy consumers, or change their schedules, in the order of the file."""

    consumers: Mapping[str, ConsumerSpec]


@dataclass(frozen=True)
class RemoveStep:
    consumer: str


@dataclass(frozen=True)
class QueueFilter:
    """A choice of queued events: those that fit all fields that are not `None`."""

    consumer: str | None
    asset: Deferred[Asset] | None
    before: datetime | None
    partition_key: str | None


@dataclass(frozen=True)
class GetQueuedStep:
    filter: QueueFilter


@dataclass(frozen=True)
class DeleteQueuedStep:
    filter: QueueFilter
    by: str
    why: str


@dataclass(frozen=True)
class StopStep:
    """The evaluator goes down."""


@dataclass(frozen=True)
class StartStep:
    """The evaluator comes back, and goes through what came meanwhile and the instants, in order (9.6)."""


@dataclass(frozen=True)
class ExplainStep:
    """A step that asks what holds a consumer back (9.15)."""

    consumer: str


@dataclass(frozen=True)
class AdvanceStep:
    """Let time pass. The time of the step says how much."""


Action = (
    EventStep
    | TaskStep
    | TickStep
    | PauseStep
    | ResumeStep
    | RedeployStep
    | RemoveStep
    | GetQueuedStep
    | DeleteQueuedStep
    | AdvanceStep
    | StopStep
    | StartStep
    | ExplainStep
    | FreshnessAction
)

TIMED_ONLY = (StopStep, StartStep, ExplainStep)
WHILE_STOPPED = (EventStep, TaskStep, AdvanceStep)


def read_action(data: Mapping[str, object], where: str) -> Action:
    """Read the action of a step."""
    kinds = [key for key in data if key in _READERS]
    if not kinds:
        refuse(f"unknown step {short(dict(data))}", where, f"Known are {', '.join(_READERS)}")
    if len(kinds) > 1:
        refuse(f"{' and '.join(kinds)} in one step", where, "Make them two steps")
    kind = kinds[0]
    as_object(data, where, (kind, "at", *_KEYS.get(kind, ())))
    return _READERS[kind](data, f"{where}, {kind}")


def seconds_of(data: Mapping[str, object], where: str) -> float:
    """Return the seconds by which an `advance` step moves the time."""
    return as_number(data["advance"], f"{where}, advance")


def _read_event(data: Mapping[str, object], where: str) -> EventStep:
    number = data.get("id")
    return EventStep(
        read_asset(data["event"], where),
        data.get("extra"),
        data.get("partition_key"),
        tuple(as_list(data.get("aliases") or [], f"{where}, aliases")),
        None if number is None else as_text(number, f"{where}, id"),
        data.get("data_version"),
    )


def _read_task(data: Mapping[str, object], where: str) -> TaskStep:
    task = as_object(data["task"], where, ("outlets", "emit", "state", "partition_key"))
    outlets = as_list(task.get("outlets", []), f"{where}, outlets")
    return TaskStep(
        tuple(read_outlet(outlet, f"{where}, outlets[{number}]") for number, outlet in enumerate(outlets)),
        tuple(
            _read_said(said, f"{where}, emit[{number}]")
            for number, said in enumerate(as_list(task.get("emit", []), f"{where}, emit"))
        ),
        _read_state(task, where),
        task.get("partition_key"),
    )


def _read_said(value: object, where: str) -> Said:
    data = as_object(value, where, ("alias", "asset", "extra", "partition_keys"))
    if "asset" not in data:
        refuse("'asset' is missing", where)
    alias = data.get("alias")
    return Said(
        None if alias is None else as_text(alias, f"{where}, alias"),
        read_asset(data["asset"], where),
        data.get("extra"),
        data.get("partition_keys"),
    )


def _read_alias_event(data: Mapping[str, object], where: str) -> TaskStep:
    event = as_object(data["alias_event"], where, ("alias", "asset", "extra", "emit", "state", "partition_key"))
    alias = as_text(event.get("alias"), f"{where}, alias")
    if ("emit" in event) == ("asset" in event):
        refuse("an alias_event has either 'asset' or 'emit'", where)
    if "emit" in event:
        added = as_list(event["emit"], f"{where}, emit")
    else:
        added = [{key: event[key] for key in ("asset", "extra") if key in event}]
    emit = tuple(
        _read_said({"alias": alias, **as_object(entry, where, ("asset", "extra"))}, f"{where}, emit[{number}]")
        for number, entry in enumerate(added)
    )
    outlet = read_outlet({"alias": alias}, where)
    return TaskStep((outlet,), emit, _read_state(event, where), event.get("partition_key"))


def _read_state(data: Mapping[str, object], where: str) -> bool:
    return as_choice(data.get("state", "completed"), TASK_STATES, f"{where}, state") == "completed"


def _read_redeploy(data: Mapping[str, object], where: str) -> RedeployStep:
    consumers = as_object(data["redeploy"], where)
    return RedeployStep({name: read_consumer(spec, f"{where} {name!r}") for name, spec in consumers.items()})


def _read_filter(data: Mapping[str, object], where: str) -> QueueFilter:
    consumer, asset = data.get("consumer"), data.get("asset")
    before, key = data.get("before"), data.get("partition_key")
    if consumer is None and asset is None:
        refuse("neither consumer nor asset is given", where, "Name at least one of them")
    return QueueFilter(
        None if consumer is None else as_text(consumer, f"{where}, consumer"),
        None if asset is None else read_asset(asset, f"{where}, asset"),
        None if before is None else as_time(before, f"{where}, before"),
        None if key is None else as_text(key, f"{where}, partition_key"),
    )


def _read_get_queued(data: Mapping[str, object], where: str) -> GetQueuedStep:
    return GetQueuedStep(_read_filter(as_object(data["get_queued"], where, _FILTER_KEYS), where))


def _read_delete_queued(data: Mapping[str, object], where: str) -> DeleteQueuedStep:
    given = as_object(data["delete_queued"], where, (*_FILTER_KEYS, "by", "why"))
    by, why = (as_text(given.get(key) or "", f"{where}, {key}") for key in ("by", "why"))
    return DeleteQueuedStep(_read_filter(given, where), by, why)


def _read_advance(data: Mapping[str, object], where: str) -> AdvanceStep:  # noqa: ARG001
    return AdvanceStep()


def _without_details(kind: str, action: Action) -> tuple[str, Callable[[Mapping[str, object], str], Action]]:
    """Return the reader of a step that has nothing but its name."""

    def read(data: Mapping[str, object], where: str) -> Action:
        if not as_bool(data[kind], where):
            refuse(f"{kind} has to be true", where)
        return action

    return kind, read


def _of_consumer(kind: str, make: Callable[[str], Action]) -> tuple[str, Callable[[Mapping[str, object], str], Action]]:
    """Return the reader of a step that names only a consumer."""
    return kind, lambda data, where: make(as_text(data[kind], where))


_KEYS = {"event": ("extra", "partition_key", "aliases", "id", "data_version"), **STEP_KEYS}
_FILTER_KEYS = ("consumer", "asset", "before", "partition_key")

_READERS: dict[str, Callable[[Mapping[str, object], str], Action]] = {
    "event": _read_event,
    "task": _read_task,
    "alias_event": _read_alias_event,
    "redeploy": _read_redeploy,
    "get_queued": _read_get_queued,
    "delete_queued": _read_delete_queued,
    "advance": _read_advance,
    **READERS,
    **dict(
        [
            _of_consumer("pause", PauseStep),
            _of_consumer("resume", ResumeStep),
            _of_consumer("remove", RemoveStep),
            _of_consumer("explain", ExplainStep),
            _without_details("tick", TickStep()),
            _without_details("stop", StopStep()),
            _without_details("start", StartStep()),
        ]
    ),
}
