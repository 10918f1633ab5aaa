"""`@flow`: an ordinary Prefect flow with a schedule over assets."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from inspect import Parameter, Signature
from types import EllipsisType
from typing import Any, ParamSpec, TypeVar, Unpack, cast, overload

import prefect
from prefect import Flow
from pydantic import Field

from assetflow.authoring.discovery import code_version_of, discover, read_code_version
from assetflow.authoring.metadata import OutletValues, to_outlets
from assetflow.authoring.schedule_options import (
    TIMING,
    DeadlineValue,
    FlowKeywords,
    FlowSchedule,
    PrefectFlowOptions,
    TimingOptions,
    change_timing,
    read_consumer,
    read_schedule,
)
from assetflow.authoring.triggering import TriggeringAssetEvents, flow_function
from assetflow.core.time.timetables import CronPartitionTimetable, PartitionedAtRuntime
from assetflow.core.values.assets import Asset, AssetAlias, Outlet, distinct
from assetflow.core.values.conditions import Token
from assetflow.core.values.keeping import Output
from assetflow.core.values.schedules import ConsumerOptions, Schedule, WhilePaused, never_runs
from assetflow.core.values.timing import OnDeadline
from assetflow.core.wire.declarations import FlowDeclaration, declaration_to_text
from assetflow.errors import AssetflowError, AssetflowWarning, InvalidFlow, InvalidSchedule
from assetflow.prefect_io.names import EVENTS_PARAMETER, KEY_PARAMETER, SCHEMA_EXTENSION

P = ParamSpec("P")
R = TypeVar("R")

_DESCRIPTIONS = {
    EVENTS_PARAMETER: "Filled in by assetflow: the updates that started the run. Leave it empty.",
    KEY_PARAMETER: "The partition key to run for.",
}


@dataclass(frozen=True)
class FlowOptions:
    """The options of `@flow` that Prefect does not have.

    Attributes:
        timing: the options about time and amounts, as they were given.
    """

    consumer: ConsumerOptions = field(default_factory=ConsumerOptions)
    produces: tuple[Outlet, ...] = ()
    reads: tuple[Outlet, ...] = ()
    code_version: str | None = None
    timing: TimingOptions = field(default_factory=TimingOptions)


class _StoredSignature:
    """The signature that Prefect stores with a deployment.

    Each access computes it anew, because tasks may be defined below the flow. It is a data descriptor, so it wins over
    the attribute that `functools.update_wrapper` copies from the function.
    """

    def __get__(self, flow: AssetFlow[..., Any] | None, owner: type) -> Signature:
        if flow is None:
            raise AttributeError("__signature__")
        signature = inspect.signature(flow.fn)
        return signature.replace(parameters=[flow.described(each) for each in signature.parameters.values()])

    def __set__(self, flow: AssetFlow[..., Any], value: object) -> None:
        raise AttributeError("__signature__")


class AssetFlow(Flow[P, R]):
    """The Prefect flow with a schedule over assets that `@flow` returns.

    >>> from assetflow import Asset, flow
    >>> @flow(schedule=Asset("s3://shop/orders"))
    ... def report(): ...
    >>> report.schedule.describe()
    's3://shop/orders'

    Call it, test it, serve it and deploy it like any Prefect flow.
    """

    _function: Callable[..., Any]
    _flow_options: FlowOptions

    @property
    def declaration(self) -> FlowDeclaration:
        """The flow's schedule, and the assets that its tasks update and read according to its code and options."""
        found = discover(self._function)
        produces = distinct((*self._flow_options.produces, *found.produces))
        reads = distinct((*self._flow_options.reads, *found.reads))
        outputs = self._outputs(produces, reads, found.outputs)
        return FlowDeclaration(self._flow_options.consumer, produces, reads, outputs)

    def _outputs(
        self, produces: Iterable[Outlet], reads: Iterable[Outlet], found: Mapping[Token, Output]
    ) -> tuple[Output, ...]:
        """Return what each output is made from, and by which code, if something compares that (contract 8.2).

        Parameters:
            found: what is known of the outputs.
        """
        named = (*produces, *reads, *self.schedule.named_assets)
        assets = [each for each in produces if not isinstance(each, AssetAlias)]
        outputs = [found.get(each.token) or Output(each.token, (), code_version_of(each)) for each in assets]
        outputs = [replace(each, code_version=each.code_version or self.code_version) for each in outputs]
        has_policy = any(isinstance(each, Asset) and each.freshness is not None for each in named)
        has_version = any(each.code_version for each in outputs)
        is_compared = self.schedule.keeping is not None or has_version or has_policy
        return tuple(outputs) if is_compared else ()

    @property
    def schedule(self) -> Schedule:
        """The schedule of the flow."""
        return self._flow_options.consumer.schedule

    @property
    def produces(self) -> tuple[Outlet, ...]:
        """The assets that `@flow(produces=…)` names."""
        return self._flow_options.produces

    @property
    def reads(self) -> tuple[Outlet, ...]:
        """The assets that `@flow(reads=…)` names."""
        return self._flow_options.reads

    @property
    def code_version(self) -> str | None:
        """The version of the flow's code; `None` if it has none."""
        return self._flow_options.code_version

    @property
    def inlets(self) -> tuple[Outlet, ...]:
        """The assets whose past events the flow's own code may read: those that it reads and is scheduled on."""
        leaves = (
            () if self.schedule.condition is None else cast("tuple[Outlet, ...]", tuple(self.schedule.condition.leaves))
        )
        return tuple(dict.fromkeys((*self.declaration.reads, *leaves)))

    @property
    def has_partition_key(self) -> bool:
        """True if each run of the flow is for one partition."""
        return _has_partition_key(self._flow_options.consumer.schedule)

    __signature__ = _StoredSignature()

    def with_options(  # pyright: ignore[reportIncompatibleMethodOverride]  the options are those of `flow`
        self,
        *,
        schedule: FlowSchedule | EllipsisType = ...,
        coalesce: bool | None = None,
        while_paused: WhilePaused | None = None,
        produces: OutletValues | EllipsisType = ...,
        reads: OutletValues | EllipsisType = ...,
        **options: Unpack[FlowKeywords],
    ) -> AssetFlow[P, R]:
        """Return a copy of the flow with other options, such as the schedule of one deployment.

        >>> from assetflow import Asset, flow
        >>> @flow(schedule=Asset("s3://shop/orders"))
        ... def report(): ...
        >>> report.with_options(name="nightly-report", schedule="0 0 * * *").schedule.describe()
        'at 00:00 every day (UTC)'

        An option that is not given stays as it is.

        Parameters:
            schedule: as in `flow`; `None` drops the schedule.
            coalesce: as in `flow`.
            while_paused: as in `flow`.
            produces: as in `flow`.
            reads: as in `flow`.
            options: `debounce`, `max_wait`, `min_events`, `max_events`, `cooldown`, `deadline`, `on_deadline` and
                `code_version` as in `flow`, where `None` takes an option away; and everything that `with_options` of a
                Prefect flow takes.

        Raises:
            InvalidSchedule: a flow cannot be scheduled on `schedule`, or an option does not fit it.
            InvalidFlow: the flow is scheduled and has a required parameter.
        """
        where = f"flow {self._function.__qualname__}"
        before = self._flow_options
        of_prefect = {name: value for name, value in options.items() if name not in (*TIMING, "code_version")}
        try:
            timing = change_timing(before.consumer.schedule, before.timing, options)
            consumer = read_consumer(
                self.schedule if schedule is ... else read_schedule(schedule),
                before.consumer.while_paused if while_paused is None else while_paused,
                before.consumer.coalesce if coalesce is None else coalesce,
                timing,
            )
            flow_options = FlowOptions(
                consumer,
                self.produces if produces is ... else to_outlets(produces, "produces"),
                self.reads if reads is ... else to_outlets(reads, "reads"),
                read_code_version(options.get("code_version", self.code_version)),
                timing,
            )
        except AssetflowError as error:
            raise error.at(where) from error
        if schedule is not ...:
            _warn_if_it_never_runs(flow_options.consumer.schedule, where)
        base = copy(self)
        base.fn = _prefect_function(self._function, flow_options)
        changed = cast("Flow[..., Any]", super(AssetFlow, base).with_options(**cast("dict[str, Any]", of_prefect)))
        return _as_asset_flow(changed, self._function, flow_options)

    def serialize_parameters(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters as Prefect stores them, without the events."""
        given = {
            name: f"{len(value.all())} events" if isinstance(value, TriggeringAssetEvents) else value
            for name, value in parameters.items()
        }
        return super().serialize_parameters(given)

    def described(self, parameter: Parameter) -> Parameter:
        """Return a parameter with the description that Prefect's form shows.

        The parameter of the events also carries the flow's declaration into the deployment.
        """
        description = _DESCRIPTIONS.get(parameter.name)
        if description is None or (parameter.name == KEY_PARAMETER and not self.has_partition_key):
            return parameter
        extra: dict[str, Any] = {}
        if parameter.name == EVENTS_PARAMETER:
            # Nobody passes events through Prefect's API. With this type, its form has no field for them.
            extra = {"type": "null", SCHEMA_EXTENSION: declaration_to_text(self.declaration)}
        return parameter.replace(default=Field(default=None, description=description, json_schema_extra=extra))


@overload
def flow(fn: Callable[P, R], /) -> AssetFlow[P, R]: ...
@overload
def flow(
    *,
    schedule: FlowSchedule = None,
    coalesce: bool = False,
    while_paused: WhilePaused = "drop",
    debounce: timedelta | None = None,
    max_wait: timedelta | None = None,
    min_events: int | None = None,
    max_events: int | None = None,
    cooldown: timedelta | None = None,
    deadline: DeadlineValue = None,
    on_deadline: OnDeadline = "alert",
    produces: OutletValues = (),
    reads: OutletValues = (),
    code_version: str | None = None,
    **options: Unpack[PrefectFlowOptions],
) -> Callable[[Callable[P, R]], AssetFlow[P, R]]: ...
def flow(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    schedule: FlowSchedule = None,
    coalesce: bool = False,
    while_paused: WhilePaused = "drop",
    debounce: timedelta | None = None,
    max_wait: timedelta | None = None,
    min_events: int | None = None,
    max_events: int | None = None,
    cooldown: timedelta | None = None,
    deadline: DeadlineValue = None,
    on_deadline: OnDeadline = "alert",
    produces: OutletValues = (),
    reads: OutletValues = (),
    code_version: str | None = None,
    **options: Unpack[PrefectFlowOptions],
) -> Any:
    """Turn a function into a Prefect flow that, once deployed, runs whenever its schedule says so.

    >>> from assetflow import Asset, TriggeringAssetEvents, flow, triggering_asset_events
    >>> orders, customers = Asset("s3://shop/orders"), Asset("s3://shop/customers")
    >>> @flow(schedule=orders & customers, retries=1)
    ... def report(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events):
    ...     print(triggering_asset_events[orders])
    >>> report.schedule.describe()
    's3://shop/orders AND s3://shop/customers'

    The function may have a parameter `triggering_asset_events`, which receives the updates that started the run. A
    partitioned flow may also have `partition_key: str | None = None`. Callers pass neither. Contract 4.1, 4.2, 4.6.

    Parameters:
        fn: the function, if the decorator has no options.
        schedule: what the flow runs on: assets combined with `&` and `|` or in a list (AND), `Eager`, `OnMissing`,
            `Lazy`, `AssetOrTimeSchedule`, `AssetAndTimeSchedule`, `PartitionedAssetTimetable`, a timetable, a cron text
            in UTC, a `timedelta`, or a schedule of Prefect's. Deployments of the flow use it by default. A flow with
            `None` is started by hand.
        coalesce: True to collect the updates that arrive during a run, and to start one run for all of them when it
            has ended (contract 4.7).
        while_paused: what becomes of updates while the schedule is paused: "drop" or "keep" (contract 3.4).
        debounce: wait until no update has arrived for this long (contract 9.9).
        max_wait: with `debounce` or `min_events`, wait no longer than this, counted from the update with which the
            condition holds (contract 9.9).
        min_events: wait until at least this many updates are queued (contract 9.9).
        max_events: the largest number of updates for one run; further runs get the rest. With 1, each update has a run
            of its own. Any single update has to satisfy the condition (contract 9.10).
        cooldown: the least time between two decisions. Updates that arrive meanwhile wait (contract 9.11).
        deadline: by when a run has to start: a `timedelta` after the opening of an `AssetAndTimeSchedule`, else after
            the oldest queued update; or a time of day, as a timetable or as a cron text in the time zone of the
            `AssetAndTimeSchedule` (contract 9.8).
        on_deadline: what a missed deadline does, apart from posting the event `assetflow.deadline.missed`: "alert" does
            nothing else, "run" starts a run with what is queued, "skip" drops what is queued (contract 9.8).
        produces: assets that the flow's tasks update and that its code does not mention by name.
        reads: assets that the flow's tasks read and that its code does not mention by name.
        code_version: the version of the flow's code, a text that you change when the flow computes something else. It
            counts for tasks without one of their own (contract 8.2).
        options: everything that Prefect's `flow` takes.

    Returns:
        An `AssetFlow`, with the signature of the function.

    Raises:
        InvalidSchedule: `schedule` is not a schedule, can never run, or has options that contradict each other
            (contract 9.16).
        InvalidFlow: the flow is scheduled and has a required parameter, which nobody would pass; or `fn` is not a
            function.
    """
    if while_paused not in ("drop", "keep"):
        raise InvalidSchedule(f"while_paused={while_paused!r}", rule="3.4", fix='Write "drop" or "keep"')
    timing: TimingOptions = {
        "debounce": debounce,
        "max_wait": max_wait,
        "min_events": min_events,
        "max_events": max_events,
        "cooldown": cooldown,
        "deadline": deadline,
        "on_deadline": on_deadline,
    }

    def decorate(function: Callable[..., Any]) -> AssetFlow[..., Any]:
        where = f"flow {getattr(function, '__qualname__', function)}"
        try:
            flow_options = FlowOptions(
                read_consumer(read_schedule(schedule), while_paused, coalesce, timing),
                to_outlets(produces, "produces"),
                to_outlets(reads, "reads"),
                read_code_version(code_version),
                timing,
            )
        except AssetflowError as error:
            raise error.at(where) from error
        _warn_if_it_never_runs(flow_options.consumer.schedule, where)
        made = prefect.flow(_prefect_function(function, flow_options), **cast("dict[str, Any]", options))
        return _as_asset_flow(made, function, flow_options)

    return decorate if fn is None else decorate(fn)


def _warn_if_it_never_runs(schedule: Schedule, where: str) -> None:
    if never_runs(schedule):
        warnings.warn(
            f"{where}: its schedule names no asset, so no update will ever start it. "
            "Name assets, or leave out schedule= if people start the flow by hand",
            AssetflowWarning,
            stacklevel=3,
        )


def _prefect_function(function: Callable[..., Any], flow_options: FlowOptions) -> Callable[..., Any]:
    if not inspect.isroutine(function):
        raise InvalidFlow(f"{function!r} is not a function", fix="Put @flow above a def")
    schedule = flow_options.consumer.schedule
    made = flow_function(function, with_partition_key=_has_partition_key(schedule))
    if schedule.starts_runs:
        _refuse_required_parameters(function, inspect.signature(made))
    return made


def _refuse_required_parameters(function: Callable[..., Any], signature: Signature) -> None:
    variadic = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    for name, parameter in signature.parameters.items():
        if parameter.default is Parameter.empty and parameter.kind not in variadic:
            raise InvalidFlow(
                f"a scheduled flow cannot have the required parameter {name!r}: nobody would pass it",
                where=f"flow {function.__qualname__}",
                fix=f"Give {name!r} a default",
            )


def _has_partition_key(schedule: Schedule) -> bool:
    return schedule.is_partitioned or isinstance(schedule.timetable, CronPartitionTimetable | PartitionedAtRuntime)


def _as_asset_flow(
    made: Flow[..., Any], function: Callable[..., Any], flow_options: FlowOptions
) -> AssetFlow[..., Any]:
    made.__class__ = AssetFlow
    found = cast("AssetFlow[..., Any]", made)
    found._function = function  # pyright: ignore[reportPrivateUsage]
    found._flow_options = flow_options  # pyright: ignore[reportPrivateUsage]
    return found
