"""The result type of a call of a Spark task, by the type that its function returns, for type checkers.

A DataFrame is published, and the call returns a `Published`; the call returns any other result unchanged.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Never, ParamSpec, Protocol, TypeAlias, TypeVar, Unpack, overload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from assetflow.authoring.discovery import TaskKeywords
    from assetflow.authoring.metadata import Metadata, OutletValues
    from assetflow.authoring.tasks import AssetTask
    from assetflow.core.values.assets import Asset
    from assetflow.spark.publish import Published

P = ParamSpec("P")
R = TypeVar("R")

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
        **task_options: Unpack[TaskKeywords],
    ) -> SparkTaskDecorator: ...
