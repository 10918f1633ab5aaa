"""`@flow`: an ordinary Prefect flow that says what it runs on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from inspect import Parameter, Signature
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

import prefect
from prefect import Flow
from pydantic import Field

from assetflow.authoring.discovery import discover
from assetflow.authoring.flow_runs import flow_function
from assetflow.authoring.metadata import to_outlets
from assetflow.authoring.prefect_schedules import read_schedule
from assetflow.authoring.triggering import TriggeringAssetEvents
from assetflow.core.assets import Outlet
from assetflow.core.codec.schedules import FlowDeclaration, declaration_to_text
from assetflow.core.schedules import ConsumerOptions, Schedule
from assetflow.core.timetables import CronPartitionTimetable, PartitionedAtRuntime
from assetflow.errors import InvalidFlow, InvalidSchedule
from assetflow.prefect_io.names import EVENTS_PARAMETER, KEY_PARAMETER, SCHEMA_EXTENSION

P = ParamSpec("P")
R = TypeVar("R")

_DESCRIPTIONS = {
    EVENTS_PARAMETER: "Filled in by assetflow: the updates that started the run. Leave it empty.",
    KEY_PARAMETER: "The partition key to run for.",
}


@dataclass(frozen=True)
class FlowOptions:
    """What `@flow` was told beyond Prefect's options."""

    options: ConsumerOptions = field(default_factory=ConsumerOptions)
    produces: tuple[Outlet, ...] = ()
    reads: tuple[Outlet, ...] = ()


class _StoredSignature:
    """The signature that Prefect stores with a deployment.

    It is made when it is asked for, at the latest moment, since tasks may be defined below the flow. As a data
    descriptor it goes before the attribute that `functools.update_wrapper` copies from the function.
    """

    def __get__(self, flow: AssetFlow[..., Any] | None, owner: type) -> Signature:
        if flow is None:
            raise AttributeError("__signature__")
        signature = inspect.signature(flow.fn)
        return signature.replace(parameters=[flow.described(each) for each in signature.parameters.values()])

    def __set__(self, flow: AssetFlow[..., Any], value: object) -> None:
        raise AttributeError("__signature__")


class AssetFlow(Flow[P, R]):
    """A Prefect flow with a schedule over assets. It is called, tested, served and deployed as any flow."""

    _function: Callable[..., Any]
    _told: FlowOptions

    @property
    def declaration(self) -> FlowDeclaration:
        """How the flow is scheduled, and what its tasks update and read, as far as its code tells."""
        found = discover(self._function)
        return FlowDeclaration(
            self._told.options,
            produces=tuple(dict.fromkeys((*self._told.produces, *found.produces))),
            reads=tuple(dict.fromkeys((*self._told.reads, *found.reads))),
        )

    @property
    def schedule(self) -> Schedule:
        """What the flow is scheduled on."""
        return self._told.options.schedule

    @property
    def produces(self) -> tuple[Outlet, ...]:
        """What `@flow(produces=…)` told."""
        return self._told.produces

    @property
    def reads(self) -> tuple[Outlet, ...]:
        """What `@flow(reads=…)` told."""
        return self._told.reads

    @property
    def inlets(self) -> tuple[Outlet, ...]:
        """What the flow's own code may read with `inlet_events()`: what it reads and is scheduled on."""
        leaves = (
            () if self.schedule.condition is None else cast("tuple[Outlet, ...]", tuple(self.schedule.condition.leaves))
        )
        return tuple(dict.fromkeys((*self.declaration.reads, *leaves)))

    @property
    def has_partition_key(self) -> bool:
        """Whether runs of the flow are for one partition each."""
        return _has_partition_key(self._told.options.schedule)

    __signature__ = _StoredSignature()

    def with_options(
        self,
        *,
        schedule: object = ...,
        coalesce: bool | None = None,
        while_paused: Literal["drop", "keep"] | None = None,
        produces: object = ...,
        reads: object = ...,
        **options: Any,
    ) -> AssetFlow[P, R]:
        """The flow with another schedule (none drops it), or other options, Prefect's included."""
        told = FlowOptions(
            replace(
                self._told.options,
                schedule=self.schedule if schedule is ... else read_schedule(schedule),
                coalesce=self._told.options.coalesce if coalesce is None else coalesce,
                while_paused=self._told.options.while_paused if while_paused is None else while_paused,
            ),
            produces=self.produces if produces is ... else to_outlets(produces, "produces"),
            reads=self.reads if reads is ... else to_outlets(reads, "reads"),
        )
        base = copy(self)
        base.fn = _prefect_function(self._function, told)
        changed = cast("Flow[..., Any]", super(AssetFlow, base).with_options(**options))
        return _as_asset_flow(changed, self._function, told)

    def serialize_parameters(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """The parameters as Prefect stores them, without the events."""
        given = {name: _stored(value) for name, value in parameters.items()}
        return super().serialize_parameters(given)

    def described(self, parameter: Parameter) -> Parameter:
        """A parameter as its form in Prefect shows it; that of the events carries the declaration."""
        description = _DESCRIPTIONS.get(parameter.name)
        if description is None or (parameter.name == KEY_PARAMETER and not self.has_partition_key):
            return parameter
        extra: dict[str, Any] = {}
        if parameter.name == EVENTS_PARAMETER:
            # Nobody passes events through Prefect's API, so that its form has nothing to fill in.
            extra = {"type": "null", SCHEMA_EXTENSION: declaration_to_text(self.declaration)}
        return parameter.replace(default=Field(default=None, description=description, json_schema_extra=extra))


@overload
def flow(fn: Callable[P, R], /) -> AssetFlow[P, R]: ...
@overload
def flow(
    *,
    schedule: object = None,
    coalesce: bool = False,
    while_paused: Literal["drop", "keep"] = "drop",
    produces: object = (),
    reads: object = (),
    **options: Any,
) -> Callable[[Callable[P, R]], AssetFlow[P, R]]: ...
def flow(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    schedule: object = None,
    coalesce: bool = False,
    while_paused: Literal["drop", "keep"] = "drop",
    produces: object = (),
    reads: object = (),
    **options: Any,
) -> Any:
    """A Prefect flow. Once it is deployed, it runs whenever its schedule says so.

    The function may have the parameter `triggering_asset_events`, which nobody needs to pass: the events that started
    the run. A partitioned flow has the optional parameter `partition_key` too.

    Parameters:
        schedule: what the flow runs on: assets combined with `&` and `|` or in a list (AND), `AssetOrTimeSchedule`,
            `PartitionedAssetTimetable`, a time table, or a schedule of Prefect's. The default for its deployments.
        coalesce: while a run has not ended, updates wait and then start one run together (4.7).
        while_paused: what becomes of updates while the schedule is paused: `drop` or `keep` (3.4).
        produces, reads: assets that the flow's tasks update and read, beyond those that its code names.
        options: everything that Prefect's `flow` takes.

    Raises:
        InvalidSchedule: `schedule` is nothing that a flow can be scheduled on, or cannot work.
        InvalidFlow: the flow is scheduled and has a required parameter, which nobody would pass.
    """
    if while_paused not in ("drop", "keep"):
        raise InvalidSchedule(f"while_paused={while_paused!r}", rule="3.4", fix='Write "drop" or "keep"')

    def decorate(function: Callable[..., Any]) -> AssetFlow[..., Any]:
        where = f"flow {getattr(function, '__qualname__', function)}"
        try:
            read = read_schedule(schedule)
        except InvalidSchedule as error:
            raise error.at(where) from error
        told = FlowOptions(
            ConsumerOptions(read, while_paused, coalesce),
            to_outlets(produces, "produces"),
            to_outlets(reads, "reads"),
        )
        made = prefect.flow(_prefect_function(function, told), **options)
        return _as_asset_flow(made, function, told)

    return decorate if fn is None else decorate(fn)


def _prefect_function(function: Callable[..., Any], told: FlowOptions) -> Callable[..., Any]:
    if not inspect.isroutine(function):
        raise InvalidFlow(f"{function!r} is no function", fix="Put @flow above a def")
    schedule = told.options.schedule
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


def _as_asset_flow(made: Flow[..., Any], function: Callable[..., Any], told: FlowOptions) -> AssetFlow[..., Any]:
    made.__class__ = AssetFlow
    found = cast("AssetFlow[..., Any]", made)
    found._function = function  # pyright: ignore[reportPrivateUsage]
    found._told = told  # pyright: ignore[reportPrivateUsage]
    return found


def _stored(value: object) -> object:
    return f"{len(value.all())} events" if isinstance(value, TriggeringAssetEvents) else value
