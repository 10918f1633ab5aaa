"""`spark_task`: a Prefect task that gets a Spark session, and publishes the DataFrames it returns to its outlets."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, cast

from prefect.context import FlowRunContext
from prefect.task_runners import ProcessPoolTaskRunner

from assetflow.authoring.decorators import SparkTaskDecorator
from assetflow.authoring.metadata import OutletValues, to_outlets
from assetflow.authoring.recording import current_recording
from assetflow.authoring.tasks import task
from assetflow.authoring.triggering import Call, PublicSignature, wrapper
from assetflow.core.values.assets import Asset, AssetAlias, Outlet
from assetflow.errors import InvalidFlow, OutletError, SparkSettingsConflict
from assetflow.spark.data_files import TABLE
from assetflow.spark.publish import publish_together
from assetflow.spark.session import SparkProfile, get_session
from assetflow.spark.watch import current_tag, run_tagged, tagged, watched
from assetflow.spark.writes import Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _typed(decorator: Callable[..., Any]) -> SparkTaskDecorator:
    return decorator


@_typed
def spark_task(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    inlets: OutletValues = (),
    outlets: OutletValues = (),
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, object] | None = None,
    data_version: Literal["table"] | None = None,
    **task_options: Any,
) -> Any:
    """Turn a function into a Prefect task that gets a `SparkSession` as its first argument. Callers leave it out.

    >>> from pathlib import Path
    >>> from assetflow import Asset, flow, spark_task
    >>> orders = Asset(Path("lake/orders").absolute().as_uri(), name="orders")
    >>> @spark_task(outlets=[orders])
    ... def produce_orders(spark, day: str):
    ...     return spark.createDataFrame([(day, 120.0), (day, 40.0)], "day STRING, total DOUBLE")
    >>> @flow
    ... def produce():
    ...     return produce_orders("2026-11-20").metrics["rows"]

    A DataFrame that the function returns becomes the data of its only outlet. With `{asset: DataFrame}`, data on local
    paths becomes visible when all is written, one asset right after the other; outlets may be left out. Callers then
    get a `Published`, or `{asset: Published}`: never a DataFrame, which could not leave the process. Callers get any
    other result unchanged. The function may also call `publish`, or write data itself; then the update is recorded, and
    the data is not protected.

    Generators and coroutines work as in `task`; an async generator calls `publish`. Contract 2.1.

    Parameters:
        fn: the function, if the decorator has no options.
        inlets: what the task reads: an asset, reference or alias, or a list or set of them.
        outlets: what the task updates; each asset gets an event when the task completes.
        master: the Spark master, instead of `ASSETFLOW_SPARK_MASTER`.
        remote: the Spark Connect address, instead of `ASSETFLOW_SPARK_REMOTE`; `""` asks for a classic session.
        conf: Spark settings on top of `ASSETFLOW_SPARK_CONF`.
        data_version: "table" gives the update of each returned DataFrame the version of its table, as in `publish`.
        task_options: `code_version`, `checks` and `keep_failed` as in `task`, and all that Prefect's `task` takes.

    Returns:
        An `AssetTask`, with the signature of the function without the session.

    Raises:
        InvalidCheck: as in `task`.
        InvalidFlow: the function has no first parameter for the session, or `data_version` is another text.
        OutletError: raised by the run: the function returns a DataFrame that does not belong to one of its outlets.
        CheckFailed: raised by the run: the data did not pass a check; nothing of it is visible (contract 12.2).
        SparkNotInstalled, JavaNotFound, SparkUnreachable, SparkSettingsConflict: raised by the run: there is no Spark
            session with these settings.
    """
    if fn is None:
        decorate: Any = spark_task
        return partial(
            decorate,
            inlets=inlets,
            outlets=outlets,
            master=master,
            remote=remote,
            conf=conf,
            data_version=data_version,
            **task_options,
        )
    if data_version not in (None, TABLE):
        raise InvalidFlow(
            f"data_version={data_version!r} would be the version of every update",
            where=f"task {getattr(fn, '__name__', fn)}",
            fix='Write data_version="table", or call publish(df, asset, data_version=...) in the task',
        )
    body = _SparkBody(fn, to_outlets(outlets, "outlets"), master, remote, dict(conf or {}), data_version)
    return task(inlets=inlets, outlets=outlets, **task_options)(body.as_function())


@dataclass(frozen=True, slots=True)
class _SparkBody:
    """The body of the task, which calls the user's function with a session and publishes its result."""

    fn: Callable[..., Any]
    outlets: tuple[Outlet, ...]
    master: str | None
    remote: str | None
    conf: Mapping[str, object]
    data_version: str | None

    def as_function(self) -> Callable[..., Any]:
        """Return a function of the same kind and signature as the user's, without the session."""
        signature = _without_session(self.fn)
        if inspect.isasyncgenfunction(self.fn):
            function = self._async_generator()
        elif inspect.iscoroutinefunction(self.fn):
            function = self._coroutine()
        else:
            function = wrapper(self.fn, self._start)
        update_wrapper(function, self.fn)
        # Without this signature, Prefect would ask the caller for the session.
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    def session(self) -> SparkSession:
        profile = SparkProfile.from_settings().override(master=self.master, remote=self.remote, conf=self.conf)
        _refuse_process_pool(profile)
        return get_session(profile)

    def finish(self, result: object, session: SparkSession, tag: str | None) -> object:
        """Publish the DataFrames that the function returned, and return the result for the caller."""
        if isinstance(result, Mapping):
            frames = cast("Mapping[object, object]", result)
            if not any(_is_frame(each) for each in frames.values()):
                return frames
            writes = [self._write(asset, df) for asset, df in frames.items()]
        elif _is_frame(result):
            writes = [self._write(self._only_outlet(), result)]
        else:
            self._refuse_hidden_frames(result)
            self._refuse_what_has_not_run(result)
            return result
        with tagged(session, tag):
            published = publish_together(writes)
        return {each.asset: each for each in published} if isinstance(result, Mapping) else published[0]

    @contextmanager
    def _start(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Generator[Call]:
        """Begin a call of a function that is not async, and publish what it returns."""
        session, tag = self.session(), current_tag()
        call = Call((session, *args), kwargs)
        with watched(session):
            with tagged(session, tag):
                yield call
            call.result = self.finish(call.result, session, tag)

    def _coroutine(self) -> Callable[..., Any]:
        async def run(*args: Any, **kwargs: Any) -> Any:
            # Spark's calls block: starting a JVM and writing data must not stop the event loop.
            session, tag = await asyncio.to_thread(self.session), current_tag()
            with watched(session):
                result = await run_tagged(self.fn(session, *args, **kwargs), session, tag)
                return await asyncio.to_thread(self.finish, result, session, tag)

        return run

    def _async_generator(self) -> Callable[..., Any]:
        async def run(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
            session, tag = await asyncio.to_thread(self.session), current_tag()
            values = self.fn(session, *args, **kwargs)
            with watched(session):
                try:
                    while True:
                        try:
                            value = await run_tagged(values.__anext__(), session, tag)
                        except StopAsyncIteration:
                            return
                        yield value
                finally:
                    await values.aclose()

        return run

    def _write(self, asset: object, df: object) -> Write:
        if not _is_frame(df):
            raise self._error(f"returned {asset}: {type(df).__name__} among DataFrames", "Return {asset: DataFrame}")
        if not isinstance(asset, Asset):
            raise self._error(
                f"returned a DataFrame under {asset!r}, which is not an asset", "Use the Asset itself as the key"
            )
        if asset not in self._assets() and not any(isinstance(each, AssetAlias) for each in self._outlets()):
            raise self._error(
                f"returned a DataFrame for {asset}, which is not one of its outlets",
                f"Add it: @spark_task(outlets=[..., Asset({asset.uri!r})])",
            )
        return Write(df, asset, data_version=self.data_version)

    def _only_outlet(self) -> Asset:
        assets, outlets = self._assets(), self._outlets()
        if len(assets) == 1 and len(outlets) == 1:
            return assets[0]
        if not outlets:
            raise self._error(
                "returned a DataFrame but has no outlet to publish it to",
                "Name one, @spark_task(outlets=[Asset(...)]), or return something small, such as df.count()",
            )
        raise self._error(
            f"returned a DataFrame without its asset, for the outlets {', '.join(map(repr, outlets))}",
            "Return {asset: DataFrame}, or call publish(df, asset)",
        )

    def _outlets(self) -> tuple[Outlet, ...]:
        """Return the outlets of the running task, which `with_options` may have changed, else the declared ones."""
        recording = current_recording()
        return self.outlets if recording is None else recording.outlets

    def _assets(self) -> list[Asset]:
        """Return the outlets that are assets, each once."""
        named = [Asset(each.uri) for each in self._outlets() if not isinstance(each, AssetAlias) and each.uri]
        return list(dict.fromkeys(named))

    def _refuse_hidden_frames(self, result: object) -> None:
        if isinstance(result, list | tuple) and any(_is_frame(each) for each in cast("Sequence[object]", result)):
            raise self._error(
                "returned several DataFrames without their assets",
                "Return {asset: DataFrame}",
            )

    def _refuse_what_has_not_run(self, result: object) -> None:
        """Refuse what a generator function or `async def` gives in another decorator: it would run without Spark."""
        prepared = inspect.isgenerator(result) or inspect.iscoroutine(result) or inspect.isasyncgen(result)
        if prepared and self._outlets():
            if inspect.iscoroutine(result):
                result.close()
            raise self._error(
                f"returned a {type(result).__name__} that nothing has run", "Put @spark_task below the other decorator"
            )

    def _error(self, what: str, fix: str) -> OutletError:
        return OutletError(f"the task {what}", fix=fix)


def _without_session(fn: Callable[..., Any]) -> inspect.Signature:
    signature = PublicSignature(fn).signature
    parameters = list(signature.parameters.values())
    takes_one = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in takes_one:
        raise InvalidFlow(
            "a spark_task needs a first parameter for the session",
            where=f"task {fn.__name__}",
            fix=f"Write def {fn.__name__}(spark, ...)",
        )
    return signature.replace(parameters=parameters[1:])


def _is_frame(value: object) -> TypeGuard[DataFrame]:
    from pyspark.sql import DataFrame

    return isinstance(value, DataFrame)


def _refuse_process_pool(profile: SparkProfile) -> None:
    context = FlowRunContext.get()
    if context is None or not context.detached or profile.mode == "connect":
        return
    if isinstance(context.task_runner, ProcessPoolTaskRunner):
        raise SparkSettingsConflict(
            "a ProcessPoolTaskRunner would start a JVM in each of its processes",
            fix='Use ThreadPoolTaskRunner (Spark runs the work in parallel anyway), or remote="local"',
        )
