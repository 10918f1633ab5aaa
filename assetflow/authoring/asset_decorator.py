"""`@asset`: turn a function that makes an asset into a flow with one task and one outlet."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial, update_wrapper
from inspect import Parameter, Signature
from pathlib import Path
from types import EllipsisType
from typing import Any, ParamSpec, TypeVar, Unpack, cast

from assetflow.authoring.attempts import FILLED
from assetflow.authoring.checks import Check, Checks
from assetflow.authoring.decorators import AssetDecorator
from assetflow.authoring.flows import AssetFlow, flow
from assetflow.authoring.metadata import OutletValues, to_outlets
from assetflow.authoring.past_events.sources import resolve_name
from assetflow.authoring.schedule_options import FlowKeywords, FlowSchedule, UnnamedFlowKeywords
from assetflow.authoring.tasks import AssetTask, task
from assetflow.authoring.triggering import PublicSignature
from assetflow.core.time.timetables import Timetable
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.values.conditions import (
    AssetAll,
    AssetAny,
    Condition,
    ConditionValue,
    Since,
    Times,
    Within,
    to_condition,
)
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.keeping import Output
from assetflow.core.values.schedules import WhilePaused
from assetflow.core.wire.declarations import FlowDeclaration
from assetflow.errors import InvalidAsset, InvalidFlow, UnknownAsset
from assetflow.prefect_io.names import KEY_PARAMETER

P = ParamSpec("P")
R = TypeVar("R")

SPARK = "spark"


class AssetDefinition(AssetFlow[P, R]):
    """The flow that `@asset` returns. In schedules, inlets and outlets it stands for the assets that it makes.

    >>> from assetflow import asset, flow
    >>> @asset(uri="s3://lake/orders")
    ... def orders(): ...
    >>> @flow(schedule=orders)
    ... def report(): ...
    >>> report.schedule.describe()
    'orders'

    If the flow makes several assets, the definition stands for all of them (AND).
    """

    outlets: tuple[Outlet, ...]
    """The assets, references and aliases that the flow updates."""

    @property
    def declaration(self) -> FlowDeclaration:
        """The flow's schedule, and what its one task updates and reads.

        Other `@asset` flows that its code mentions do not count, because this flow does not run them.
        """
        inlets = tuple(each.token for each in self.reads if not isinstance(each, AssetAlias))
        made = {each.token: Output(each.token, inlets) for each in self.outlets if not isinstance(each, AssetAlias)}
        outputs = self._outputs(self.outlets, self.reads, made)
        return FlowDeclaration(self._flow_options.consumer, self.outlets, self.reads, outputs)

    @property
    def asset(self) -> Asset:
        """The asset that the flow makes.

        Raises:
            InvalidFlow: the flow makes several assets, or only an alias or a reference.
        """
        if len(self.outlets) == 1 and isinstance(self.outlets[0], Asset):
            return self.outlets[0]
        raise InvalidFlow(f"{self.name!r} does not make just one asset", fix="Use its `outlets`")

    def as_condition(self) -> Condition:
        """Return the condition that the definition stands for in a schedule."""
        return self.outlets[0] if len(self.outlets) == 1 else AssetAll(*self.outlets)

    def with_options(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        *,
        schedule: FlowSchedule | EllipsisType = ...,
        coalesce: bool | None = None,
        while_paused: WhilePaused | None = None,
        reads: OutletValues | EllipsisType = ...,
        **options: Unpack[FlowKeywords],
    ) -> AssetDefinition[P, R]:
        """Return a copy with other options, as `AssetFlow.with_options` does. The outlets stay."""
        changed = super().with_options(
            schedule=schedule, coalesce=coalesce, while_paused=while_paused, reads=reads, **options
        )
        return _as_definition(changed, self.outlets)

    def __and__(self, other: ConditionValue) -> AssetAll:
        return self.as_condition() & other

    def __or__(self, other: ConditionValue) -> AssetAny:
        return self.as_condition() | other

    def __rand__(self, other: ConditionValue) -> AssetAll:
        return to_condition(other) & self.as_condition()

    def __ror__(self, other: ConditionValue) -> AssetAny:
        return to_condition(other) | self.as_condition()

    def times(self, n: int) -> Times:
        """Return the condition that at least `n` updates of the asset are queued, as `Asset.times` does."""
        return Times(self.as_condition(), n)

    def within(self, span: timedelta) -> Within:
        """Return the condition that all assets were updated within a span, as `Condition.within` does."""
        return self.as_condition().within(span)

    def since(self, timetable: str | Timetable, *, timezone: str = "UTC") -> Since:
        """Return the condition that all assets were updated in one period, as `Condition.since` does."""
        return self.as_condition().since(timetable, timezone=timezone)


class _AssetDecorator:
    """Turn a function into a flow with one task, whose outlet is the asset that the function makes.

    >>> from assetflow import Asset, asset
    >>> inbox = Asset("s3://shop/inbox", name="inbox")
    >>> @asset(uri="s3://lake/orders", schedule=inbox)
    ... def orders(spark, inbox):
    ...     return spark.read.json(inbox.uri)
    >>> orders.asset
    Asset('s3://lake/orders', name='orders')

    A parameter without a default is an inlet: it is named like an asset, and its value is that `Asset`. A parameter
    with a default is a parameter of the flow. With a first parameter `spark`, the task is a `spark_task`, and the
    DataFrame that the function returns becomes the asset's data. The function may also have the parameters
    `outlet_events`, `inlet_events`, `triggering_asset_events` and `partition_key`. `asset.multi` makes several assets.

    Parameters:
        fn: the function, if the decorator has no options.
        schedule: as in `flow`.
        uri: the asset's URI; by default its name.
        name: the asset's name; by default the function's.
        group: as in `Asset`.
        extra: as in `Asset`.
        freshness: as in `Asset`.
        spark: True if the first parameter is a Spark session, or the session's `master`, `remote` and `conf`. By
            default the name of the first parameter decides.
        checks: the checks of the asset's data, from `assetflow.checks`; see `task`.
        keep_failed: as in `task`.
        coalesce: as in `flow`.
        while_paused: as in `flow`.
        options: `debounce` to `on_deadline` and `code_version` as in `flow`, and everything that Prefect's `flow`
            takes, except the name.

    Returns:
        An `AssetDefinition`.

    Raises:
        InvalidAsset: the URI, the name, or the name of a parameter breaks contract 1.4 or 1.5.
        InvalidSchedule: as in `flow`.
        InvalidFlow: the function has a parameter without a name (`*args`), or it is not a function.
        InvalidCheck: as in `task`.
    """

    def __call__(
        self,
        fn: Callable[..., Any] | None = None,
        /,
        *,
        schedule: FlowSchedule = None,
        uri: str | None = None,
        name: str | None = None,
        group: str = "",
        extra: Mapping[str, object] | None = None,
        freshness: FreshnessPolicy | None = None,
        spark: bool | Mapping[str, Any] | None = None,
        checks: Check | Sequence[Check] = (),
        keep_failed: str | Path | None = None,
        coalesce: bool = False,
        while_paused: WhilePaused = "drop",
        **options: Unpack[UnnamedFlowKeywords],
    ) -> Any:
        """Decorate a function, or return a decorator with these options."""

        def decorate(function: Callable[..., Any]) -> AssetDefinition[..., Any]:
            _check_is_function(function)
            called = name or function.__name__
            made = Asset(uri=uri or called, name=called, group=group, extra=extra, freshness=freshness)
            flow_options = {"schedule": schedule, "coalesce": coalesce, "while_paused": while_paused, **options}
            task_options = {"checks": {made: checks} if checks else None, "keep_failed": keep_failed}
            return _define(function, (made,), spark, task_options, flow_options)

        return decorate if fn is None else decorate(fn)

    def multi(
        self,
        *,
        outlets: OutletValues,
        schedule: FlowSchedule = None,
        spark: bool | Mapping[str, Any] | None = None,
        checks: Checks | None = None,
        keep_failed: str | Path | None = None,
        coalesce: bool = False,
        while_paused: WhilePaused = "drop",
        **options: Unpack[FlowKeywords],
    ) -> Callable[[Callable[..., R]], AssetDefinition[..., R]]:
        """Turn a function into a flow with one task that makes several assets.

        >>> from assetflow import Asset, asset
        >>> good, bad = Asset("s3://lake/good"), Asset("s3://lake/bad")
        >>> @asset.multi(outlets=[good, bad], schedule="@daily")
        ... def split(): ...
        >>> split.outlets
        (Asset('s3://lake/good'), Asset('s3://lake/bad'))

        Parameters:
            outlets: assets, references or aliases, in a list.
            schedule: as in `flow`.
            spark: as in `asset`.
            checks: as in `task`.
            keep_failed: as in `task`.
            coalesce: as in `flow`.
            while_paused: as in `flow`.
            options: `debounce` to `on_deadline` as in `flow`, and everything that Prefect's `flow` takes.

        Returns:
            An `AssetDefinition`.

        Raises:
            InvalidFlow: as in `asset`, or there are no outlets.
            InvalidSchedule: as in `flow`.
            InvalidCheck: as in `task`.
        """
        made = to_outlets(outlets, "outlets")
        if not made:
            raise InvalidFlow("the asset.multi has no outlets", fix='Write outlets=[Asset("..."), Asset("...")]')

        def decorate(function: Callable[..., Any]) -> AssetDefinition[..., Any]:
            _check_is_function(function)
            flow_options = {"schedule": schedule, "coalesce": coalesce, "while_paused": while_paused, **options}
            task_options = {"checks": checks, "keep_failed": keep_failed}
            return _define(function, made, spark, task_options, flow_options)

        return decorate


asset: AssetDecorator = cast(Any, _AssetDecorator())


def _define(
    function: Callable[..., Any],
    outlets: tuple[Outlet, ...],
    spark: bool | Mapping[str, Any] | None,
    task_options: Mapping[str, Any],
    options: Mapping[str, Any],
) -> AssetDefinition[..., Any]:
    own = list(PublicSignature(function).signature.parameters.values())
    with_spark = (bool(own) and own[0].name == SPARK) if spark is None else spark is not False
    named, of_flow = _parameters_of(function, own[1:] if with_spark else own)
    inlets = tuple(named.values())
    of_task = {**task_options, "inlets": inlets, "outlets": outlets}
    made = _task(function, with_spark, spark if isinstance(spark, Mapping) else {}, of_task)
    body = _flow_body(function, made, named, of_flow)
    return _as_definition(flow(produces=outlets, reads=inlets, **options)(body), outlets)


def _task(
    function: Callable[..., Any],
    with_spark: bool,
    profile: Mapping[str, Any],
    options: Mapping[str, Any],
) -> AssetTask[..., Any]:
    if not with_spark:
        return task(**options)(function)
    # The Spark modules import this one, and flows without Spark need not have it installed.
    from assetflow.spark.task import spark_task

    return spark_task(**options, **profile)(function)


def _flow_body(
    function: Callable[..., Any],
    made: AssetTask[..., Any],
    inlets: Mapping[str, Asset | AssetRef],
    of_flow: Sequence[Parameter],
) -> Callable[..., Any]:
    """Return the flow's function, which looks up the inlets and runs the task."""
    look_up = partial(_inlet_assets, function, inlets)

    def run(**given: Any) -> Any:
        return made(**look_up(), **given)

    async def run_async(**given: Any) -> Any:
        return await made(**look_up(), **given)

    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    body: Any = update_wrapper(run_async if is_async else run, function)
    body.__signature__ = Signature(of_flow)
    return body


def _parameters_of(
    function: Callable[..., Any], own: Iterable[Parameter]
) -> tuple[Mapping[str, Asset | AssetRef], Sequence[Parameter]]:
    """Return which parameters are inlets, by name, and which the flow has, without those that assetflow fills in."""
    inlets: dict[str, Asset | AssetRef] = {}
    of_flow: list[Parameter] = []
    where = f"asset {function.__qualname__}"
    for parameter in own:
        name = parameter.name
        if parameter.kind not in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
            raise InvalidFlow(
                f"the parameter {parameter} cannot be passed by name", where=where, fix="Name each parameter"
            )
        if name == KEY_PARAMETER or (parameter.default is not Parameter.empty and name not in FILLED):
            default = None if parameter.default is Parameter.empty else parameter.default
            of_flow.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, default=default))
        elif name not in FILLED:
            try:
                known = _asset_in_module(function, name)
                inlets[name] = Asset.ref(name=name) if known is None else known
            except InvalidAsset as error:
                raise error.at(f"{where}, parameter {name!r}") from error
    return inlets, of_flow


def _inlet_assets(function: Callable[..., Any], inlets: Mapping[str, Asset | AssetRef]) -> dict[str, Asset]:
    """Return the asset of each inlet. An asset defined below the function is found only here, during the run."""
    found: dict[str, Asset] = {}
    for name, inlet in inlets.items():
        known = inlet if isinstance(inlet, Asset) else _asset_in_module(function, name)
        if known is None:
            uri = resolve_name(name)
            if uri is None:
                raise UnknownAsset(
                    f"no asset is named {name!r}",
                    where=f"asset {function.__qualname__}, parameter {name!r}",
                    fix="Name the parameter like an asset that is defined in its module or was updated once, "
                    "or give it a default to make it a parameter of the flow",
                )
            known = Asset(uri=uri, name=name)
        found[name] = known
    return found


def _asset_in_module(function: Callable[..., Any], name: str) -> Asset | None:
    """Return the asset that a global name of the function's module holds: an `Asset`, or one made by `@asset`."""
    value = inspect.unwrap(function).__globals__.get(name)
    if isinstance(value, AssetDefinition):
        value = cast("AssetDefinition[..., Any]", value).asset
    return value if isinstance(value, Asset) else None


def _as_definition(made: AssetFlow[..., Any], outlets: tuple[Outlet, ...]) -> AssetDefinition[..., Any]:
    made.__class__ = AssetDefinition
    found = cast("AssetDefinition[..., Any]", made)
    found.outlets = outlets
    return found


def _check_is_function(function: object) -> None:
    if not inspect.isroutine(function):
        raise InvalidFlow(f"{function!r} is not a function", fix="Put @asset above a def")
