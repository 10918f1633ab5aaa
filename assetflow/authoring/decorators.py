"""The types of `task`, `asset` and `spark_task` as decorators: what each gives for each kind of function."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    Never,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    Unpack,
    overload,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from assetflow.authoring.asset_decorator import AssetDefinition
    from assetflow.authoring.checks import Check, Checks
    from assetflow.authoring.discovery import TaskKeywords
    from assetflow.authoring.metadata import Metadata, OutletValues
    from assetflow.authoring.schedule_options import FlowKeywords, FlowSchedule, UnnamedFlowKeywords
    from assetflow.authoring.tasks import AssetTask
    from assetflow.core.values.assets import Asset
    from assetflow.core.values.freshness_policy import FreshnessPolicy
    from assetflow.core.values.schedules import WhilePaused
    from assetflow.spark.writes import Published

P = ParamSpec("P")
R = TypeVar("R")


class OutletTaskDecorator(Protocol):
    """The decorator of a task with outlets."""

    # A function without annotations matches every overload, so the one for `Never` catches it.
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, fn: Callable[P, Never], /
    ) -> AssetTask[P, Any]: ...
    @overload
    def __call__(self, fn: Callable[P, Generator[Any, Any, R]], /) -> AssetTask[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, Iterator[Metadata]], /) -> AssetTask[P, None]: ...
    @overload
    def __call__(
        self, fn: Callable[P, AsyncGenerator[Any, Any] | AsyncIterator[Metadata]], /
    ) -> AssetTask[P, Coroutine[Any, Any, None]]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> AssetTask[P, R]: ...


class AssetFunctionDecorator(Protocol):
    """`asset` with the function or with options, and the decorator that the options give: both take either."""

    # The order matters: a function without annotations matches every overload, so the one for `Never` catches it; a
    # function that returns None matches `DataFrame | None` too.
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, fn: Callable[..., Never], /
    ) -> AssetDefinition[..., Any]: ...
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, fn: Callable[..., None], /
    ) -> AssetDefinition[..., None]: ...
    @overload
    def __call__(self, fn: Callable[..., DataFrame], /) -> AssetDefinition[..., Published]: ...
    @overload
    def __call__(self, fn: Callable[..., DataFrame | None], /) -> AssetDefinition[..., Published | None]: ...
    @overload
    def __call__(
        self, fn: Callable[..., Mapping[Asset, DataFrame]], /
    ) -> AssetDefinition[..., dict[Asset, Published]]: ...
    @overload
    def __call__(self, fn: Callable[..., Generator[Any, Any, R]], /) -> AssetDefinition[..., R]: ...
    @overload
    def __call__(self, fn: Callable[..., R], /) -> AssetDefinition[..., R]: ...
    @overload
    def __call__(
        self,
        fn: None = None,
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
    ) -> AssetFunctionDecorator: ...


class AssetDecorator(AssetFunctionDecorator, Protocol):
    """The type of `asset`, which also has the method `multi`."""

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
    ) -> AssetFunctionDecorator: ...


Body: TypeAlias = "Callable[Concatenate[SparkSession, P], R]"
Later: TypeAlias = "Coroutine[Any, Any, R]"


class SparkTaskDecorator(Protocol):
    """`spark_task`, and the decorator that `spark_task(outlets=…)` returns: both take the function, or options."""

    # The order matters: a function without annotations matches every overload, so the one for `Never` catches it; a
    # function that returns None matches `DataFrame | None` too.
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, fn: Body[P, Never], /
    ) -> AssetTask[P, Any]: ...
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, fn: Body[P, Later[Never]], /
    ) -> AssetTask[P, Later[Any]]: ...
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, fn: Body[P, Generator[Any, Any, Never]], /
    ) -> AssetTask[P, Any]: ...
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, fn: Body[P, None], /
    ) -> AssetTask[P, None]: ...
    @overload
    def __call__(self, fn: Body[P, DataFrame], /) -> AssetTask[P, Published]: ...
    @overload
    def __call__(self, fn: Body[P, DataFrame | None], /) -> AssetTask[P, Published | None]: ...
    @overload
    def __call__(self, fn: Body[P, Mapping[Asset, DataFrame]], /) -> AssetTask[P, dict[Asset, Published]]: ...
    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, fn: Body[P, Later[None]], /
    ) -> AssetTask[P, Later[None]]: ...
    @overload
    def __call__(self, fn: Body[P, Later[DataFrame]], /) -> AssetTask[P, Later[Published]]: ...
    @overload
    def __call__(self, fn: Body[P, Later[DataFrame | None]], /) -> AssetTask[P, Later[Published | None]]: ...
    @overload
    def __call__(
        self, fn: Body[P, Later[Mapping[Asset, DataFrame]]], /
    ) -> AssetTask[P, Later[dict[Asset, Published]]]: ...
    @overload
    def __call__(self, fn: Body[P, Generator[Any, Any, None]], /) -> AssetTask[P, None]: ...
    @overload
    def __call__(self, fn: Body[P, Generator[Any, Any, DataFrame]], /) -> AssetTask[P, Published]: ...
    @overload
    def __call__(self, fn: Body[P, Generator[Any, Any, R]], /) -> AssetTask[P, R]: ...
    @overload
    def __call__(self, fn: Body[P, Iterator[Metadata]], /) -> AssetTask[P, None]: ...
    @overload
    def __call__(
        self, fn: Body[P, AsyncGenerator[Any, Any] | AsyncIterator[Metadata]], /
    ) -> AssetTask[P, Later[None]]: ...
    @overload
    def __call__(self, fn: Body[P, R], /) -> AssetTask[P, R]: ...
    @overload
    def __call__(
        self,
        fn: None = None,
        /,
        *,
        inlets: OutletValues = (),
        outlets: OutletValues = (),
        master: str | None = None,
        remote: str | None = None,
        conf: Mapping[str, object] | None = None,
        data_version: Literal["table"] | None = None,
        **task_options: Unpack[TaskKeywords],
    ) -> SparkTaskDecorator: ...
