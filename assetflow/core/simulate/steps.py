"""Scenarios, and their steps. Each step is an object with the key that names it and the further keys of its class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal, cast

from assetflow.core.simulate.conditions import AnAsset, AnOutlet, Uri, read_asset
from assetflow.core.simulate.consumers import ConsumerSpec, read_consumer
from assetflow.core.simulate.reading import (
    Deferred,
    as_list,
    as_object,
    as_text,
    is_object,
    main_key,
    need,
    read,
    refuse,
    short,
)
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.schedules import ConsumerOptions

TaskState = Literal["completed", "failed", "crashed", "cancelled", "skipped", "cached", "rolled_back", "retrying"]
RunState = Literal["completed", "failed", "cancelled", "crashed"]
Passes = Literal["tick", "live", "timed"]

_KEYS = ("name", "why", "dagster", "start", "receipts", "passes", "consumers", "steps")
_DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)
_BETWEEN_STEPS = timedelta(seconds=60)


@dataclass(frozen=True, kw_only=True)
class Action:
    """The base class of steps.

    Attributes:
        at: when it happens; a minute after the step before if it is `None`.
    """

    at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class EventStep(Action):
    """Record one event."""

    event: AnAsset
    extra: object = None
    partition_key: object = None
    aliases: tuple[object, ...] = ()
    id: str | None = None
    data_version: object = None


@dataclass(frozen=True, kw_only=True)
class Said:
    """The report of a task on one outlet; on an alias if `alias` is not `None`."""

    alias: str | None = None
    asset: AnAsset
    extra: object = None
    partition_keys: object = None


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task that ends. Only a completed one makes updates."""

    outlets: tuple[AnOutlet, ...] = ()
    emit: tuple[Said, ...] = ()
    state: TaskState = "completed"
    partition_key: object = None


@dataclass(frozen=True, kw_only=True)
class TaskStep(Action):
    """End a task."""

    task: Task


@dataclass(frozen=True, kw_only=True)
class Added:
    """An asset that a task adds through an alias."""

    asset: AnAsset
    extra: object = None


@dataclass(frozen=True, kw_only=True)
class AliasEvent:
    """A task with one alias as outlet, through which it adds one asset or several."""

    alias: str
    asset: AnAsset | None = None
    extra: object = None
    emit: tuple[Added, ...] | None = None
    state: TaskState = "completed"
    partition_key: object = None

    def __post_init__(self) -> None:
        if (self.emit is None) == (self.asset is None):
            refuse("an alias_event has either 'asset' or 'emit'", "")


@dataclass(frozen=True, kw_only=True)
class AliasEventStep(Action):
    """End a task that has one alias as outlet."""

    alias_event: AliasEvent

    @property
    def task(self) -> Task:
        """The task, as a `TaskStep` has it."""
        of = self.alias_event
        added = of.emit or () if of.asset is None else (Added(asset=of.asset, extra=of.extra),)
        said = tuple(Said(alias=of.alias, asset=each.asset, extra=each.extra) for each in added)
        outlet = partial(AssetAlias, of.alias)
        return Task(outlets=(outlet,), emit=said, state=of.state, partition_key=of.partition_key)


@dataclass(frozen=True, kw_only=True)
class TickStep(Action):
    """Make one pass over all consumers."""

    tick: Literal[True]


@dataclass(frozen=True, kw_only=True)
class PauseStep(Action):
    pause: str


@dataclass(frozen=True, kw_only=True)
class ResumeStep(Action):
    resume: str


def _read_consumers(value: object, where: str) -> Mapping[str, ConsumerSpec]:
    specs = as_object(value, where).items()
    return {name: read_consumer(spec, f"{where} {name!r}") for name, spec in specs}


@dataclass(frozen=True, kw_only=True)
class RedeployStep(Action):
    """Deploy consumers, or change their schedules, in the order of the file."""

    redeploy: Annotated[Mapping[str, ConsumerSpec], _read_consumers]


@dataclass(frozen=True, kw_only=True)
class RemoveStep(Action):
    remove: str


@dataclass(frozen=True, kw_only=True)
class QueueFilter:
    """A choice of queued events: those that fit all fields that are not `None`."""

    consumer: str | None = None
    asset: AnAsset | None = None
    before: datetime | None = None
    partition_key: str | None = None

    def __post_init__(self) -> None:
        if self.consumer is None and self.asset is None:
            refuse("neither consumer nor asset is given", "", "Name at least one of them")


@dataclass(frozen=True, kw_only=True)
class GetQueuedStep(Action):
    get_queued: QueueFilter


@dataclass(frozen=True, kw_only=True)
class Removal(QueueFilter):
    """Queued events that somebody removes, who it is, and why."""

    by: str = ""
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class DeleteQueuedStep(Action):
    delete_queued: Removal


@dataclass(frozen=True, kw_only=True)
class StopStep(Action):
    """The evaluator goes down."""

    stop: Literal[True]


@dataclass(frozen=True, kw_only=True)
class StartStep(Action):
    """The evaluator comes back, and goes through what came meanwhile and the instants, in order (9.6)."""

    start: Literal[True]


@dataclass(frozen=True, kw_only=True)
class ExplainStep(Action):
    """A step that asks what holds a consumer back (9.15)."""

    explain: str


@dataclass(frozen=True, kw_only=True)
class AdvanceStep(Action):
    """Let time pass, by so many seconds."""

    advance: float


@dataclass(frozen=True, kw_only=True)
class ObserveStep(Action):
    """An observation of a source: its version, or the versions of its keys; an error if it failed."""

    observe: AnAsset
    version: object = None
    error: object = None

    def __post_init__(self) -> None:
        if (self.version is None) == (self.error is None):
            refuse("an observation has either a version or an error", "")


@dataclass(frozen=True, kw_only=True)
class TriggerStep(Action):
    """Start a manual run of a consumer, which consumes nothing."""

    trigger: str
    partition_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class BeginStep(Action):
    """The runs of a consumer begin, later than they were asked for."""

    begin: str
    partition_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a run ends.

    Attributes:
        partition_key: the key of the run; of a flow without partitions, that of what it makes.
        versions: the data versions that it gives, by output.
        skips: the outputs that it confirms instead of updating them.
        made: the outputs that it updated, whatever its state; `None` for all or none of them.
        held_back: the outputs whose data failed a check: the run has failed (12.2).
    """

    partition_key: str | None = None
    state: RunState = "completed"
    versions: Mapping[Uri, object] = field(default_factory=dict[str, object])
    skips: tuple[Uri, ...] = ()
    made: tuple[Uri, ...] | None = None
    held_back: tuple[Uri, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FinishStep(Action, Ending):
    """End the runs of a consumer, or those of one key."""

    finish: str


@dataclass(frozen=True, kw_only=True)
class AgainStep(Action):
    """The last run of a consumer, or of one key, goes on again after its end: somebody retries it in Prefect (4.7)."""

    again: str
    partition_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunStep(Action, Ending):
    """A manual run of a consumer from begin to end."""

    run: str


@dataclass(frozen=True, kw_only=True)
class RetryStep(Action):
    """Forget what a consumer tried and waived (8.7)."""

    retry: str
    partition_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Backfilled:
    """What is backfilled."""

    asset: AnAsset
    keys: tuple[str, ...] | None = None
    down: bool = False
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class BackfillStep(Action):
    """Backfill an asset, and what lies below it (8.18)."""

    backfill: Backfilled


Item = tuple[Deferred[Asset], str | None]


def _read_item(value: object, where: str) -> Item:
    if not isinstance(value, list):
        return read_asset(value, where), None
    asset, key = cast("list[object]", value)
    return read_asset(asset, where), as_text(key, where)


def _all_or(kind: Any) -> Callable[[object, str], tuple[Any, ...] | None]:
    """Return what reads a list; `None` stands for true: for all that there are."""
    return lambda value, where: None if value is True else read(tuple[kind, ...], value, where)


@dataclass(frozen=True, kw_only=True)
class StatusStep(Action):
    """The status of some items, or of everything that is read or made (8.9)."""

    status: Annotated[tuple[Item, ...] | None, _all_or(Annotated[Item, _read_item])]


@dataclass(frozen=True, kw_only=True)
class FreshnessStep(Action):
    """The data time and the state of some assets, or of all that have a policy (8.12, 8.13)."""

    freshness: Annotated[tuple[Deferred[Asset], ...] | None, _all_or(AnAsset)]


@dataclass(frozen=True, kw_only=True)
class PlanStep(Action):
    """A step that asks for the plan: what would run now, and what holds the rest back (8.16)."""

    plan: Literal[True]


TIMED_ONLY = (StopStep, StartStep, ExplainStep)
WHILE_STOPPED = (EventStep, TaskStep, AliasEventStep, AdvanceStep)

_KINDS: Iterable[type[Action]] = (
    *(EventStep, TaskStep, AliasEventStep, RedeployStep, GetQueuedStep, DeleteQueuedStep, AdvanceStep),
    *(ObserveStep, TriggerStep, BeginStep, FinishStep, AgainStep, RunStep, RetryStep, BackfillStep),
    *(StatusStep, FreshnessStep, PlanStep),
    *(PauseStep, ResumeStep, RemoveStep, ExplainStep, TickStep, StopStep, StartStep),
)
_STEPS = {main_key(kind): kind for kind in _KINDS}


def read_action(value: object, where: str) -> Action:
    """Read a step."""
    data = as_object(value, where)
    kinds = [key for key in data if key in _STEPS]
    if not kinds:
        refuse(f"unknown step {short(dict(data))}", where, f"Known are {', '.join(_STEPS)}")
    if len(kinds) > 1:
        refuse(f"{' and '.join(kinds)} in one step", where, "Make them two steps")
    return read(_STEPS[kinds[0]], data, where)


@dataclass(frozen=True)
class Step:
    """One step: its time, its action, and the data from which it was read."""

    time: datetime
    action: Action
    source: Mapping[str, object]


@dataclass(frozen=True)
class Scenario:
    """A scenario to simulate.

    Attributes:
        start: when the consumers are deployed, UTC.
        consumers: the consumers by name, in the order in which they are deployed.
        receipts: the answer has the receipts.
        passes: "tick": there is a pass at each `tick` step. "live": there is one after every step, as in the running
            system (contract 4.3). "timed": the clock runs between the steps, too (contract 9.6).
    """

    name: str
    start: datetime
    consumers: Mapping[str, ConsumerSpec]
    steps: tuple[Step, ...]
    receipts: bool = False
    passes: Passes = "tick"


def read_scenario(value: object, where: str = "") -> Scenario:
    """Return the scenario in plain JSON data.

    Parameters:
        where: the file that the data came from, which errors name.

    Raises:
        InvalidScenario: the data does not have the format. The error names the scenario and the step.
    """
    name = value.get("name") if is_object(value) else None
    called = "scenario" if name is None else f"scenario {short(name)}"
    place = f"{where}: {called}" if where else called
    data = as_object(value, place, _KEYS)
    need(data, ("name",), place)
    start: datetime = read(datetime, data.get("start", _DEFAULT_START), f"{place}, start")
    consumers = as_object(data.get("consumers", {}), f"{place}, consumers")
    scenario = Scenario(
        name=read(str, data["name"], f"{place}, name"),
        start=start,
        consumers={key: read_consumer(spec, f"{place}, consumer {key!r}") for key, spec in consumers.items()},
        steps=tuple(read_steps(as_list(data.get("steps", []), f"{place}, steps"), start, place)),
        receipts=read(bool, data.get("receipts", False), f"{place}, receipts"),
        passes=read(Passes, data.get("passes", "tick"), f"{place}, passes"),
    )
    _check_timed(scenario, place)
    return scenario


def _check_timed(scenario: Scenario, where: str) -> None:
    """Refuse what needs a clock in a scenario without one, and what cannot happen while the evaluator is down."""
    specs = list(scenario.consumers.values())
    stopped = False
    for number, step in enumerate(scenario.steps):
        place = f"{where}, step {number}"
        if isinstance(step.action, RedeployStep):
            specs += step.action.redeploy.values()
        if isinstance(step.action, TIMED_ONLY) and scenario.passes != "timed":
            refuse("this step needs a clock", place, 'Write "passes": "timed"')
        if isinstance(step.action, StartStep) != stopped and isinstance(step.action, StartStep | StopStep):
            refuse("the evaluator is stopped and started in turn", place)
        if stopped and not isinstance(step.action, (*WHILE_STOPPED, StartStep)):
            refuse("while the evaluator is down, only updates come and time passes", place)
        stopped = isinstance(step.action, StopStep) or (stopped and not isinstance(step.action, StartStep))
    if scenario.passes != "timed" and any(spec.is_timed for spec in specs):
        refuse("a consumer needs a clock", where, 'Write "passes": "timed"')


def read_scenarios(value: object, where: str = "") -> list[Scenario]:
    """Return the scenarios in the data of a file: a list of scenarios, or one. Raises as `read_scenario` does."""
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return [read_scenario(one, where) for one in values]


def scenario_of_flows(name: str, flows: Mapping[str, ConsumerOptions], steps: object, where: str = "") -> Scenario:
    """Return the scenario of existing flows, with passes as in the running system, and with its clock if they need it.

    Parameters:
        flows: the name and the options of each flow.
        steps: a list of steps, as in a scenario.
        where: the file that the steps came from, which errors name.

    Raises:
        InvalidScenario: the steps do not have the format.
    """
    found = tuple(read_steps(as_list(steps, where), _DEFAULT_START, where))
    timed = any(options.is_timed for options in flows.values()) or any(isinstance(s.action, TIMED_ONLY) for s in found)
    consumers = {flow: ConsumerSpec(lambda options=options: options) for flow, options in flows.items()}
    scenario = Scenario(name, _DEFAULT_START, consumers, found, receipts=True, passes="timed" if timed else "live")
    _check_timed(scenario, where)
    return scenario


def read_steps(steps: Iterable[object], start: datetime, where: str) -> Iterable[Step]:
    """Yield the steps with their times: a minute apart unless the step gives a time, and never backwards."""
    now = start
    for number, value in enumerate(steps):
        place = f"{where}, step {number}"
        action = read_action(value, place)
        time = _time_of(action, now, place)
        if time < now:
            refuse(f"time goes backwards, from {now:%Y-%m-%dT%H:%M:%SZ} to {time:%Y-%m-%dT%H:%M:%SZ}", place)
        now = time
        yield Step(now, action, cast("Mapping[str, object]", value))


def _time_of(action: Action, now: datetime, where: str) -> datetime:
    try:
        if isinstance(action, AdvanceStep):
            return (action.at or now) + timedelta(seconds=action.advance)
        return action.at or now + _BETWEEN_STEPS
    except (OverflowError, ValueError):
        refuse("the clock runs past the year 9999", where)
