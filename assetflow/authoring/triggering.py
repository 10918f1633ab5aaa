"""`triggering_asset_events` and `partition_key`: the updates that started a run, and the key that it is for.

Both are in the flow run's context, unless a caller passes a value, which wins. Subflows and tasks find them through
Prefect's own context of the flow run, in threads and on remote workers too. Contract 5.3, 7.1.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, cast
from uuid import UUID

from prefect.context import FlowRunContext

from assetflow.authoring.metadata import to_outlet
from assetflow.core.partitions import check_key
from assetflow.core.values.assets import Asset, AssetAlias, Outlet
from assetflow.core.values.conditions import AssetLike, Token
from assetflow.core.values.events import AssetEvent
from assetflow.core.wire.fields import Json
from assetflow.core.wire.run_context import RunContext, events_from_text, run_context_from_json
from assetflow.errors import InvalidEvent
from assetflow.prefect_io.internals import flow_run_contexts
from assetflow.prefect_io.names import EVENTS_PARAMETER, KEY_PARAMETER
from assetflow.prefect_io.rest import TaskApi

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class PublicSignature:
    """The signature of a user's function for its callers, and the way back to the function's own arguments.

    Attributes:
        signature: the signature for callers: parameters that assetflow fills in are keyword-only and optional.
        declared: the names of these parameters that the function itself declares.

    Parameters:
        fn: the user's function.
        filled: names of parameters that are filled in if the function declares them.
        added: names of parameters that callers may give whether or not the function declares them.
    """

    def __init__(self, fn: Callable[..., Any], *, filled: Iterable[str] = (), added: Iterable[str] = ()) -> None:
        own = _evaluated(fn)
        names = [*added, *(name for name in filled if name in own.parameters)]
        self.declared = frozenset(name for name in names if name in own.parameters)
        self.signature = _with_optional(own, names)
        kinds = {parameter.kind for parameter in own.parameters.values()}
        # Without these kinds every argument can be passed by name, wherever the filled-in parameters stand. A decorator
        # that calls the function may take positional arguments only, so they stay as they are if nothing is filled in.
        self._by_name = bool(self.declared) and not kinds & {Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL}
        self._positional = [name for name, each in self.signature.parameters.items() if each.kind in _POSITIONAL]

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return a caller's arguments as arguments of the function."""
        if not self._by_name or len(args) > len(self._positional):
            return args, dict(kwargs)
        return (), {**dict(zip(self._positional, args, strict=False)), **kwargs}


def _evaluated(fn: Callable[..., Any]) -> Signature:
    """Return the signature with its annotations as objects.

    An annotation that cannot be evaluated, such as a name that is imported for type checkers only, is dropped.
    """
    try:
        return inspect.signature(fn, eval_str=True)
    except Exception:
        own = inspect.signature(fn)
    namespace = getattr(inspect.unwrap(fn), "__globals__", {})
    parameters = [each.replace(annotation=_evaluate(each.annotation, namespace)) for each in own.parameters.values()]
    return own.replace(parameters=parameters, return_annotation=_evaluate(own.return_annotation, namespace))


def _evaluate(annotation: object, namespace: dict[str, Any]) -> object:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, namespace)
    except Exception:
        return Parameter.empty


def _with_optional(own: Signature, names: Iterable[str]) -> Signature:
    names = list(dict.fromkeys(names))
    kept = [each for name, each in own.parameters.items() if name not in names]
    optional = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Any) for name in names]
    # Only **kwargs may follow keyword-only parameters.
    rest = [each for each in kept if each.kind is Parameter.VAR_KEYWORD]
    return own.replace(parameters=[*(each for each in kept if each not in rest), *optional, *rest])


class TriggeringAssetEvents(Mapping[Asset | AssetAlias, list[AssetEvent]]):
    """The updates that started a run: a mapping from assets and aliases to events, in the ledger's order.

    >>> from assetflow import Asset, TriggeringAssetEvents
    >>> nothing = TriggeringAssetEvents()
    >>> nothing[Asset("s3://shop/orders")], len(nothing)
    ([], 0)

    Iterating gives the assets, then the aliases, that have events. Look up an asset by the `Asset`, by a reference or
    by the text of its URI; an asset without events gives an empty list. A run that no update started has no events.
    A run has all updates of a recording: read the whole list, not `[0]`, or schedule the flow with `max_events=1`.

    Contract 7.1.

    Parameters:
        events: the events. In a test, make some and pass them to the flow:
            `report(triggering_asset_events=TriggeringAssetEvents(…))`.
        artifact: the id of the Prefect artifact that holds them, if they were too large for the run's context.
    """

    def __init__(self, events: Iterable[AssetEvent] = (), *, artifact: UUID | None = None) -> None:
        self._loaded: tuple[AssetEvent, ...] | None = tuple(events) if artifact is None else None
        self._artifact = artifact

    @classmethod
    def of(cls, value: object) -> TriggeringAssetEvents:
        """Return the events that a caller passed: a list of events, or a mapping from assets and aliases to events.

        Raises:
            InvalidEvent: the value is something else.
        """
        if isinstance(value, TriggeringAssetEvents):
            return value
        if isinstance(value, Mapping):
            return cls(_flattened(cast("Mapping[object, object]", value)))
        return cls(_events_in(value))

    @classmethod
    def of_run(cls, context: RunContext | None) -> TriggeringAssetEvents:
        """Return the events in a run's context. Events in an artifact are loaded on first use."""
        if context is None:
            return cls()
        return cls(context.events or (), artifact=context.artifact if context.events is None else None)

    def all(self) -> list[AssetEvent]:
        """Return all events, in the order in which the ledger recorded them."""
        if self._loaded is None:
            self._loaded = _fetched(self._artifact)
        return list(self._loaded)

    def __getitem__(self, key: Outlet | AssetLike | str) -> list[AssetEvent]:
        target = Asset(key) if isinstance(key, str) else to_outlet(key)
        return [event for event in self.all() if matches(event, target.token)]

    def __contains__(self, key: object) -> bool:
        return bool(self[cast("Asset", key)]) if isinstance(key, Outlet | str) else False

    def __iter__(self) -> Iterator[Asset | AssetAlias]:
        assets: dict[Asset, None] = dict.fromkeys(event.asset for event in self.all())
        aliases = {AssetAlias(alias): None for event in self.all() for alias in event.aliases}
        return iter([*assets, *aliases])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"TriggeringAssetEvents({list(self)!r})"

    def __reduce__(self) -> tuple[object, ...] | str:
        return (type(self), (self.all(),))


class CurrentTriggeringAssetEvents(TriggeringAssetEvents):
    """The updates that started the current flow run, for code that imports the name.

    >>> from assetflow import Asset, TriggeringAssetEvents, flow, triggering_asset_events
    >>> orders = Asset("s3://shop/orders")
    >>> @flow(schedule=orders)
    ... def report(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events) -> int:
    ...     return len(triggering_asset_events[orders])

    As the default of a parameter it lets callers leave the parameter out. Subflows and tasks may use it too. Calling
    it, `triggering_asset_events()`, returns the mapping of the run, to be passed on. Contract 7.1.
    """

    def __call__(self) -> TriggeringAssetEvents:
        for context in flow_run_contexts():
            passed = (context.parameters or {}).get(EVENTS_PARAMETER)
            if passed is not None and passed is not self:
                return TriggeringAssetEvents.of(passed)
            found = run_context_from_json(context.flow_run.context if context.flow_run else None)
            if found is not None:
                return TriggeringAssetEvents.of_run(found)
        return TriggeringAssetEvents()

    def all(self) -> list[AssetEvent]:
        return self().all()

    def __reduce__(self) -> str:
        return "triggering_asset_events"


triggering_asset_events = CurrentTriggeringAssetEvents()


def partition_key() -> str | None:
    """Return the partition key of the current flow run, or `None` if the run has none.

    >>> from assetflow import partition_key
    >>> partition_key() is None
    True

    Contract 5.3.
    """
    for context in flow_run_contexts():
        passed = (context.parameters or {}).get(KEY_PARAMETER)
        if passed not in (None, "") and getattr(context.flow, "has_partition_key", False):
            return cast(str, passed)
        found = run_context_from_json(context.flow_run.context if context.flow_run else None)
        if found is not None:
            return found.partition_key
    return None


def matches(event: AssetEvent, token: Token) -> bool:
    """Return True if a token finds an event: by the URI or the name of its asset, or by an alias of the event."""
    if token.kind == "alias":
        return token.value in event.aliases
    return token.value == (event.uri if token.kind == "uri" else event.asset.name)


def _flattened(mapping: Mapping[object, object]) -> list[AssetEvent]:
    """Return the events of a mapping, each once. Events under an alias get that alias."""
    found: dict[UUID, AssetEvent] = {}
    for key, events in mapping.items():
        for event in _events_in(events):
            event = found.get(event.id, event)
            if isinstance(key, AssetAlias):
                event = replace(event, aliases=tuple(sorted({*event.aliases, key.name})))
            found[event.id] = event
    return list(found.values())


def _events_in(value: object) -> list[AssetEvent]:
    events = list(cast("Iterable[object]", value)) if isinstance(value, Iterable) else [value]
    for event in events:
        if not isinstance(event, AssetEvent):
            raise InvalidEvent(
                f"{EVENTS_PARAMETER} holds {event!r}, which is not an event",
                rule="7.1",
                fix="Pass events, or a mapping from assets to lists of events",
            )
    return cast("list[AssetEvent]", events)


def _fetched(artifact: UUID | None) -> tuple[AssetEvent, ...]:
    """Return the events in an artifact, which were too large for the run's context."""
    with TaskApi.connect() as api:
        stored = cast(Json, api.get(f"/artifacts/{artifact}"))
    return events_from_text(stored.get("data"), where=f"artifact {artifact}")


def flow_function(fn: Callable[..., Any], *, with_partition_key: bool) -> Callable[..., Any]:
    """Return the function of the Prefect flow for the user's function.

    Callers may pass `triggering_asset_events`, and `partition_key` to a partitioned flow, whether or not the function
    has these parameters.
    """
    added = (EVENTS_PARAMETER, KEY_PARAMETER) if with_partition_key else (EVENTS_PARAMETER,)
    public = PublicSignature(fn, added=added)

    def start(args: tuple[Any, ...], kwargs: dict[str, Any]) -> AbstractContextManager[Call]:
        given, named = public.arguments(args, kwargs)
        passed = {name: named.pop(name, None) for name in added}
        filled = _filled(passed, run)
        own = {name: value for name, value in filled.items() if name in public.declared}
        return nullcontext(Call(given, {**named, **own}))

    run = wrapper(fn, start)
    run.__signature__ = public.signature
    return run


@dataclass
class Call:
    """A call of a user's function: the arguments that it gets, and what it returned."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any = None

    def finish(self) -> Any:
        """Return the result for the caller."""
        return self.result


def wrapper(fn: Callable[..., Any], start: Callable[..., AbstractContextManager[Call]]) -> Any:
    """Return a function of the kind of the user's, each of whose calls is one that `start` has begun."""
    if inspect.isasyncgenfunction(fn):

        async def run_async_generator(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            with start(args, kwargs) as call:
                async for item in fn(*call.args, **call.kwargs):
                    yield item

        return wraps(fn)(run_async_generator)
    if inspect.isgeneratorfunction(fn):

        def run_generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            with start(args, kwargs) as call:
                call.result = yield from fn(*call.args, **call.kwargs)
            return call.finish()

        return wraps(fn)(run_generator)
    if inspect.iscoroutinefunction(fn):

        async def run_async(*args: Any, **kwargs: Any) -> Any:
            with start(args, kwargs) as call:
                call.result = await fn(*call.args, **call.kwargs)
            return call.finish()

        return wraps(fn)(run_async)

    def run(*args: Any, **kwargs: Any) -> Any:
        with start(args, kwargs) as call:
            call.result = fn(*call.args, **call.kwargs)
        return call.finish()

    return wraps(fn)(run)


def _filled(passed: dict[str, Any], flow_fn: Callable[..., Any]) -> dict[str, Any]:
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
        and context.flow.fn is flow_fn
        and context.parameters is not None
    ):
        context.parameters.update(filled)
    return filled
