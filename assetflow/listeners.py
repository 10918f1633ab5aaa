"""Listeners: functions of yours that the evaluator calls when something has happened.

>>> from assetflow.listeners import on_asset_event_emitted
>>> @on_asset_event_emitted
... def tell(event):
...     print(event.asset.name, event.extra)

They run in the evaluator's process. The evaluator imports the modules that `ASSETFLOW_LISTENERS` names
("pkg.module,other"), and loads the entry points of the group `assetflow.listeners`. An entry point names a module or an
object; functions in it that are called like a hook are listeners too, decorated or not.

A listener gets one frozen value, after the commit, once for each cause, in the order of the ledger. Listeners are
called one at a time in a thread of their own: a slow one delays the others and no decision. What a listener raises is
logged and harms nothing.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.timing import OnDeadline
from assetflow.errors import InvalidListener, InvalidSettings

__all__ = [
    "DeadlineMissed",
    "DecisionMade",
    "RunCreated",
    "on_asset_alias_created",
    "on_asset_changed",
    "on_asset_created",
    "on_asset_event_emitted",
    "on_deadline_missed",
    "on_decision",
    "on_run_created",
]

GROUP = "assetflow.listeners"

logger = logging.getLogger("assetflow.listeners")

F = TypeVar("F", bound=Callable[..., object])
Listener = Callable[[Any], object]


@dataclass(frozen=True)
class DecisionMade:
    """A decision: a run of a consumer follows, because its condition held or what it makes is out of date.

    >>> from assetflow.listeners import DecisionMade, on_decision
    >>> @on_decision
    ... def tell(decision: DecisionMade):
    ...     print(f"{decision.consumer} runs with {len(decision.events)} updates")

    Contract 4.2, 8.5.

    Attributes:
        id: the id of the decision.
        consumer: `flow/deployment`.
        deployment_id: the id of the deployment.
        partition_key: the partition that it is about; `None` if the consumer is not partitioned.
        events: what the consumer consumes, oldest first; an Eager or Lazy consumer consumes nothing.
        made: when the decision was made, UTC.
    """

    id: UUID
    consumer: str
    deployment_id: UUID
    partition_key: str | None
    events: tuple[AssetEvent, ...]
    made: datetime


@dataclass(frozen=True)
class RunCreated:
    """A flow run that assetflow created, for a decision or for a time of a timetable (then it may be for later).

    >>> from assetflow.listeners import RunCreated, on_run_created
    >>> @on_run_created
    ... def tell(run: RunCreated):
    ...     print(f"{run.consumer}: flow run {run.flow_run_id}")

    Contract 4.6, 6.1.

    Attributes:
        flow_run_id: the id of the flow run.
        consumer: `flow/deployment`.
        deployment_id: the id of the deployment.
        partition_key: the run's key, or `None`.
        decision: the id of the decision that the run follows; `None` for a run by time.
        tick: the time that the run is for, UTC; `None` for a decision's.
    """

    flow_run_id: UUID
    consumer: str
    deployment_id: UUID
    partition_key: str | None = None
    decision: UUID | None = None
    tick: datetime | None = None


@dataclass(frozen=True)
class DeadlineMissed:
    """A deadline that passed without a decision. Contract 9.8.

    >>> from assetflow.listeners import DeadlineMissed, on_deadline_missed
    >>> @on_deadline_missed
    ... def tell(missed: DeadlineMissed):
    ...     print(f"{missed.consumer} still needs {', '.join(missed.missing)}")

    Attributes:
        consumer: `flow/deployment`.
        deployment_id: the id of the deployment.
        partition_key: the partition whose deadline it was; `None` if the consumer is not partitioned.
        due: when the decision should have come, UTC.
        missing: the assets and aliases of which no update was queued, each by its URI or its name.
        queued: the number of updates that were queued.
        then: what the consumer does now: "alert", "run" or "skip".
    """

    consumer: str
    deployment_id: UUID
    partition_key: str | None
    due: datetime
    missing: tuple[str, ...]
    queued: int
    then: OnDeadline


def on_asset_created(listener: Callable[[Asset], object]) -> Callable[[Asset], object]:
    """Call the function with each asset that is seen for the first time, in an event or in what a flow declares.

    >>> from assetflow.listeners import on_asset_created
    >>> @on_asset_created
    ... def tell(asset):
    ...     print(asset.uri, asset.group)

    Parameters:
        listener: a function with one parameter, the `Asset`.

    Returns:
        The function itself.

    Raises:
        InvalidListener: it is not an ordinary function.
    """
    return _register("on_asset_created", listener)


def on_asset_alias_created(listener: Callable[[AssetAlias], object]) -> Callable[[AssetAlias], object]:
    """Call the function with each alias through which an event comes for the first time.

    >>> from assetflow.listeners import on_asset_alias_created
    >>> @on_asset_alias_created
    ... def tell(alias):
    ...     print(alias.name)

    Parameters:
        listener: a function with one parameter, the `AssetAlias`.

    Returns:
        The function itself.

    Raises:
        InvalidListener: it is not an ordinary function.
    """
    return _register("on_asset_alias_created", listener)


def on_asset_changed(listener: Callable[[Asset], object]) -> Callable[[Asset], object]:
    """Call the function with the asset of each update, as its producer declared it.

    >>> from assetflow.listeners import on_asset_changed
    >>> @on_asset_changed
    ... def tell(asset):
    ...     print(asset.name, "was updated")

    Parameters:
        listener: a function with one parameter, the `Asset`.

    Returns:
        The function itself.

    Raises:
        InvalidListener: it is not an ordinary function.
    """
    return _register("on_asset_changed", listener)


def on_asset_event_emitted(listener: Callable[[AssetEvent], object]) -> Callable[[AssetEvent], object]:
    """Call the function with each recorded event.

    >>> from assetflow.listeners import on_asset_event_emitted
    >>> @on_asset_event_emitted
    ... def tell(event):
    ...     print(event.uri, event.extra)

    Parameters:
        listener: a function with one parameter, the `AssetEvent`.

    Returns:
        The function itself.

    Raises:
        InvalidListener: it is not an ordinary function.
    """
    return _register("on_asset_event_emitted", listener)


def on_decision(listener: Callable[[DecisionMade], object]) -> Callable[[DecisionMade], object]:
    """Call the function with each decision.

    >>> from assetflow.listeners import on_decision
    >>> @on_decision
    ... def tell(decision):
    ...     print(decision.consumer, len(decision.events))

    Parameters:
        listener: a function with one parameter, the `DecisionMade`.

    Returns:
        The function itself.

    Raises:
        InvalidListener: it is not an ordinary function.
    """
    return _register("on_decision", listener)


def on_run_created(listener: Callable[[RunCreated], object]) -> Callable[[RunCreated], object]:
    """Call the function with each flow run that assetflow creates.

    >>> from assetflow.listeners import on_run_created
    >>> @on_run_created
    ... def tell(run):
    ...     print(run.consumer, run.flow_run_id)

    Parameters:
        listener: a function with one parameter, the `RunCreated`.

    Returns:
        The function itself.

    Raises:
        InvalidListener: it is not an ordinary function.
    """
    return _register("on_run_created", listener)


def on_deadline_missed(listener: Callable[[DeadlineMissed], object]) -> Callable[[DeadlineMissed], object]:
    """Call the function with each deadline that was missed.

    >>> from assetflow.listeners import on_deadline_missed
    >>> @on_deadline_missed
    ... def tell(missed):
    ...     print(missed.consumer, "lacks", *missed.missing)

    Contract 9.8.

    Parameters:
        listener: a function with one parameter, the `DeadlineMissed`.

    Returns:
        The function itself.

    Raises:
        InvalidListener: it is not an ordinary function.
    """
    return _register("on_deadline_missed", listener)


_HOOKS: Mapping[str, Listener] = {
    hook.__name__: hook
    for hook in (
        on_asset_created,
        on_asset_alias_created,
        on_asset_changed,
        on_asset_event_emitted,
        on_decision,
        on_deadline_missed,
        on_run_created,
    )
}
_registered: dict[str, list[Listener]] = {}


class Listeners:
    """The listeners of one evaluator, by hook."""

    def __init__(self, by_hook: Mapping[str, Iterable[Listener]]) -> None:
        self._by_hook = {hook: tuple(listeners) for hook, listeners in by_hook.items()}

    def __bool__(self) -> bool:
        return any(self._by_hook.values())

    def tell(self, hook: str, value: object) -> None:
        """Call the listeners of a hook; it never raises."""
        for listener in self._by_hook.get(hook, ()):
            try:
                listener(value)
            except BaseException:  # a listener that calls sys.exit() must not end the thread
                logger.exception("listener %s failed", _name(listener))


def load_listeners(modules: Iterable[str]) -> Listeners:
    """Return the listeners of these modules, of installed packages, and those that are registered already.

    Parameters:
        modules: names of modules to import, from the installed packages or from the working folder.

    Raises:
        InvalidSettings: a module cannot be imported. (A package's entry point that fails is logged and left out.)
        InvalidListener: a module has a listener that cannot be called.
    """
    for name in modules:
        # The command `assetflow` begins with its own folder on the path, not with the project's.
        if (here := str(Path.cwd())) not in sys.path:
            sys.path.append(here)
        try:
            module = import_module(name)
        except Exception as error:
            raise InvalidSettings(
                f"ASSETFLOW_LISTENERS names {name!r}, which cannot be imported: {error}",
                where="environment",
                fix="Name modules in the folder where the evaluator starts, or installed ones, separated by commas",
            ) from error
        _register_named(module)
    for point in entry_points(group=GROUP):
        _load(point)
    return Listeners(_registered)


def _load(point: EntryPoint) -> None:
    try:
        _register_named(point.load())
    except Exception:
        logger.exception("the listeners of entry point %s = %s cannot be loaded", point.name, point.value)


def _register_named(holder: object) -> None:
    """Register the functions of a module or an object that are called like hooks, but not the decorators themselves."""
    for name, hook in _HOOKS.items():
        listener = getattr(holder, name, None)
        if listener is not None and listener is not hook:
            _register(name, listener)


def _register(hook: str, listener: F) -> F:
    if not callable(listener) or inspect.iscoroutinefunction(listener):
        raise InvalidListener(
            f"{listener!r} cannot be a listener of {hook}", fix="Write an ordinary function with one parameter"
        )
    listeners = _registered.setdefault(hook, [])
    if listener not in listeners:
        listeners.append(listener)
    return listener


def _name(listener: Listener) -> str:
    return f"{getattr(listener, '__module__', '')}.{getattr(listener, '__qualname__', repr(listener))}"
