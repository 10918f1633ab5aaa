"""`@asset`: a function that makes an asset, as a flow with one task and one outlet."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial, update_wrapper
from inspect import Parameter, Signature
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

from assetflow.authoring.attempts import FILLED
from assetflow.authoring.flows import AssetFlow, flow
from assetflow.authoring.metadata import to_outlets
from assetflow.authoring.signature import PublicSignature
from assetflow.authoring.sources import resolve_name
from assetflow.authoring.tasks import AssetTask, task
from assetflow.core.assets import Asset, AssetRef, Outlet
from assetflow.core.codec.schedules import FlowDeclaration
from assetflow.core.conditions import AssetAll, AssetAny, Condition
from assetflow.errors import InvalidAsset, InvalidFlow, UnknownAsset
from assetflow.prefect_io.names import KEY_PARAMETER

P = ParamSpec("P")
R = TypeVar("R")

SPARK = "spark"


class AssetDefinition(AssetFlow[P, R]):
    """A flow that makes assets. In schedules, inlets and outlets it stands for them: for several, for all (AND)."""

    outlets: tuple[Outlet, ...]
    """What the flow makes."""

    @property
    def declaration(self) -> FlowDeclaration:
        """How the flow is scheduled, and what its one task makes and reads; other definitions that its code names are
        not run by it."""
        return FlowDeclaration(self._told.options, self.outlets, self.reads)

    @property
    def asset(self) -> Asset:
        """The asset that the flow makes.

        Raises:
            InvalidFlow: it makes several, or only an alias or a reference.
        """
        if len(self.outlets) == 1 and isinstance(self.outlets[0], Asset):
            return self.outlets[0]
        raise InvalidFlow(f"{self.name!r} does not make just one asset", fix="Look into its `outlets`")

    def as_condition(self) -> Condition:
        """What it stands for in a schedule."""
        return self.outlets[0] if len(self.outlets) == 1 else AssetAll(*self.outlets)

    def with_options(self, **options: Any) -> AssetDefinition[P, R]:
        """As `AssetFlow.with_options`."""
        return _as_definition(super().with_options(**options), self.outlets)

    def __and__(self, other: object) -> AssetAll:
        return self.as_condition() & other

    def __or__(self, other: object) -> AssetAny:
        return self.as_condition() | other

    def __rand__(self, other: object) -> AssetAll:
        return other & self.as_condition()

    def __ror__(self, other: object) -> AssetAny:
        return other | self.as_condition()


class _AssetDecorator:
    @overload
    def __call__(self, fn: Callable[P, R], /) -> AssetDefinition[..., R]: ...
    @overload
    def __call__(
        self,
        /,
        *,
        schedule: object = None,
        uri: str | None = None,
        name: str | None = None,
        group: str = "",
        extra: Mapping[str, object] | None = None,
        spark: bool | Mapping[str, Any] | None = None,
        coalesce: bool = False,
        while_paused: Literal["drop", "keep"] = "drop",
        **options: Any,
    ) -> Callable[[Callable[P, R]], AssetDefinition[..., R]]: ...
    def __call__(
        self,
        fn: Callable[..., Any] | None = None,
        /,
        *,
        schedule: object = None,
        uri: str | None = None,
        name: str | None = None,
        group: str = "",
        extra: Mapping[str, object] | None = None,
        spark: bool | Mapping[str, Any] | None = None,
        coalesce: bool = False,
        while_paused: Literal["drop", "keep"] = "drop",
        **options: Any,
    ) -> Any:
        """A function that makes an asset, named like the function: a flow with one task and one outlet.

            @asset(uri="s3://lake/orders", schedule=CronTriggerTimetable("0 6 * * *"))
            def orders(spark, inbox): ...

        A parameter without a default is named like an asset: an inlet, whose value is that `Asset` (read it with
        `assetflow.read`). A parameter with a default is a parameter of the flow. A first parameter `spark` makes the
        task a `spark_task`: the DataFrame that it returns becomes the asset's data. The function may have the
        parameters of a task, `outlet_events`, `inlet_events` and `triggering_asset_events`, and `partition_key`.

        Parameters:
            schedule: as in `flow`.
            uri: the asset's URI; its name if none is given.
            name: the asset's name; the function's if none is given.
            group, extra: as in `Asset`.
            spark: whether the first parameter is a Spark session, or the session's `master`, `remote` and `conf`.
            coalesce, while_paused: as in `flow`.
            options: everything that Prefect's `flow` takes.

        Raises:
            InvalidAsset: URI or name, or the name of a parameter, breaks chapter 1: `self` and `context` among them.
            InvalidSchedule: as in `flow`.
            InvalidFlow: the function has parameters without names.
        """

        def decorate(function: Callable[..., Any]) -> AssetDefinition[..., Any]:
            _check_is_function(function)
            called = name or function.__name__
            made = Asset(uri=uri or called, name=called, group=group, extra=extra)
            asked = {"schedule": schedule, "coalesce": coalesce, "while_paused": while_paused, **options}
            return _define(function, (made,), spark, asked)

        return decorate if fn is None else decorate(fn)

    def multi(
        self,
        *,
        outlets: object,
        schedule: object = None,
        spark: bool | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Callable[[Callable[..., R]], AssetDefinition[..., R]]:
        """A function that makes several assets: a flow with one task and these outlets.

        Parameters:
            outlets: assets, references or aliases, in a list.
            schedule, spark, options: as in `asset`; `name` is the flow's.

        Raises:
            InvalidFlow: as in `asset`; or there are no outlets.
        """
        made = to_outlets(outlets, "outlets")
        if not made:
            raise InvalidFlow("an asset.multi makes no asset", fix='Write outlets=[Asset("..."), Asset("...")]')

        def decorate(function: Callable[..., Any]) -> AssetDefinition[..., Any]:
            _check_is_function(function)
            return _define(function, made, spark, {"schedule": schedule, **options})

        return decorate


asset = _AssetDecorator()


@dataclass(frozen=True)
class _Parameters:
    """The parameters of an asset's function, by what becomes of them."""

    inlets: Mapping[str, Asset | AssetRef]
    of_flow: tuple[Parameter, ...]


def _define(
    function: Callable[..., Any],
    outlets: tuple[Outlet, ...],
    spark: bool | Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> AssetDefinition[..., Any]:
    own = list(PublicSignature(function).signature.parameters.values())
    with_spark = (bool(own) and own[0].name == SPARK) if spark is None else spark is not False
    parameters = _sorted_out(function, own[1:] if with_spark else own)
    inlets = tuple(parameters.inlets.values())
    made = _task(function, with_spark, spark if isinstance(spark, Mapping) else {}, inlets, outlets)
    body = _flow_body(function, made, parameters)
    return _as_definition(flow(produces=outlets, reads=inlets, **options)(body), outlets)


def _task(
    function: Callable[..., Any],
    with_spark: bool,
    profile: Mapping[str, Any],
    inlets: tuple[Outlet, ...],
    outlets: tuple[Outlet, ...],
) -> AssetTask[..., Any]:
    if not with_spark:
        return task(inlets=inlets, outlets=outlets)(function)
    # What stands on top of this module; and who has no Spark has no use for it.
    from assetflow.spark.task import spark_task

    return spark_task(inlets=inlets, outlets=outlets, **profile)(function)


def _flow_body(function: Callable[..., Any], made: AssetTask[..., Any], parameters: _Parameters) -> Callable[..., Any]:
    """The flow's function: it looks up the inlets and runs the task."""
    look_up = partial(_assets, function, parameters.inlets)

    def run(**given: Any) -> Any:
        return made(**look_up(), **given)

    async def run_async(**given: Any) -> Any:
        return await made(**look_up(), **given)

    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    body: Any = update_wrapper(run_async if is_async else run, function)
    body.__signature__ = Signature(list(parameters.of_flow))
    return body


def _sorted_out(function: Callable[..., Any], own: Iterable[Parameter]) -> _Parameters:
    inlets: dict[str, Asset | AssetRef] = {}
    of_flow: list[Parameter] = []
    where = f"asset {function.__qualname__}"
    for parameter in own:
        name = parameter.name
        if parameter.kind not in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
            raise InvalidFlow(
                f"the parameter {parameter} has no name that callers use", where=where, fix="Name each parameter"
            )
        if name == KEY_PARAMETER or (parameter.default is not Parameter.empty and name not in FILLED):
            default = None if parameter.default is Parameter.empty else parameter.default
            of_flow.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, default=default))
        elif name not in FILLED:
            try:
                known = _defined(function, name)
                inlets[name] = Asset.ref(name=name) if known is None else known
            except InvalidAsset as error:
                raise error.at(f"{where}, parameter {name!r}") from error
    return _Parameters(inlets, tuple(of_flow))


def _assets(function: Callable[..., Any], inlets: Mapping[str, Asset | AssetRef]) -> dict[str, Asset]:
    """The assets that parameters are named like; one that was defined below the function is found when it runs."""
    found: dict[str, Asset] = {}
    for name, inlet in inlets.items():
        known = inlet if isinstance(inlet, Asset) else _defined(function, name)
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


def _defined(function: Callable[..., Any], name: str) -> Asset | None:
    """The asset of this name in the function's module: made by `@asset`, or an `Asset`."""
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
        raise InvalidFlow(f"{function!r} is no function", fix="Put @asset above a def")
