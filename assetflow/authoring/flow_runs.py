"""The function that Prefect runs for a flow: it fills in the events and the key of the run. Contract 7.1."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Generator
from functools import wraps
from typing import Any, cast

from prefect.context import FlowRunContext

from assetflow.authoring.signature import PublicSignature
from assetflow.authoring.triggering import TriggeringAssetEvents, partition_key, triggering_asset_events
from assetflow.core.partitions import check_key
from assetflow.prefect_io.names import EVENTS_PARAMETER, KEY_PARAMETER


def flow_function(fn: Callable[..., Any], *, with_partition_key: bool) -> Callable[..., Any]:
    """Return the function of the Prefect flow for the user's function.

    Callers may pass `triggering_asset_events`, and `partition_key` to a partitioned flow, whether or not the function
    has these parameters.
    """
    added = (EVENTS_PARAMETER, KEY_PARAMETER) if with_partition_key else (EVENTS_PARAMETER,)
    public = PublicSignature(fn, added=added)

    def arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given, named = public.arguments(args, kwargs)
        passed = {name: named.pop(name, None) for name in added}
        filled = _filled(passed, run)
        return given, {**named, **{name: value for name, value in filled.items() if name in public.declared}}

    run = _wrapper(fn, arguments)
    run.__signature__ = public.signature
    return run


def _wrapper(fn: Callable[..., Any], arguments: Callable[..., Any]) -> Any:
    if inspect.isasyncgenfunction(fn):

        @wraps(fn)
        async def run_async_generator(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            given, named = arguments(args, kwargs)
            async for item in fn(*given, **named):
                yield item

        return run_async_generator
    if inspect.isgeneratorfunction(fn):

        @wraps(fn)
        def run_generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            given, named = arguments(args, kwargs)
            return (yield from cast("Generator[Any, Any, Any]", fn(*given, **named)))

        return run_generator
    if inspect.iscoroutinefunction(fn):

        @wraps(fn)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            given, named = arguments(args, kwargs)
            return await fn(*given, **named)

        return run_async

    @wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        given, named = arguments(args, kwargs)
        return fn(*given, **named)

    return run


def _filled(passed: dict[str, Any], wrapper: Callable[..., Any]) -> dict[str, Any]:
    """Return the events and the key: those that the caller passed, else those of the flow run.

    They become parameters of the flow run, where its tasks find them on any machine.
    """
    filled = dict(passed)
    events = passed[EVENTS_PARAMETER]
    filled[EVENTS_PARAMETER] = triggering_asset_events() if events is None else TriggeringAssetEvents.of(events)
    if KEY_PARAMETER in passed:
        # An empty field of Prefect's form arrives as an empty text.
        key = passed[KEY_PARAMETER]
        filled[KEY_PARAMETER] = partition_key() if key is None or key == "" else check_key(key)
    context = FlowRunContext.get()
    if (
        context is not None
        and context.flow is not None
        and context.flow.fn is wrapper
        and context.parameters is not None
    ):
        context.parameters.update(filled)
    return filled
