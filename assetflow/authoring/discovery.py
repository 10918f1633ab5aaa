"""Find the assets that a flow's tasks update and read, by looking at its code.

The search follows the names in the code: to tasks and flows in globals, closures, modules and plain containers, and
through functions of the same package. `@flow(produces=…, reads=…)` declares what the search cannot find.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, cast

from prefect import Flow, Task

from assetflow.authoring.code_versions import code_version_of
from assetflow.authoring.names_in_code import objects_named
from assetflow.core.condition_tree import Token
from assetflow.core.freshness.data_flow import Output
from assetflow.core.values.assets import AssetAlias, Outlet, distinct

_LARGEST_CONTAINER = 200


@dataclass
class Discovered:
    """The outlets and inlets that were found: each once, in the order in which the code mentions them.

    Attributes:
        outputs: what the tasks make, each asset with the inlets and the code version of the first task that makes it.
    """

    produces: tuple[Outlet, ...] = ()
    reads: tuple[Outlet, ...] = ()
    outputs: dict[Token, Output] = field(default_factory=dict[Token, Output])


def discover(fn: Callable[..., object]) -> Discovered:
    """Return what the tasks and flows that a function's code mentions update and read."""
    found = Discovered()
    root = cast(object, inspect.unwrap(fn))
    package = (getattr(root, "__module__", None) or "").partition(".")[0]
    seen: set[int] = set()
    # A stack; its top is the name that comes next in the code.
    waiting: list[object] = [root]
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Task | Flow):
            made = cast("Task[..., Any] | Flow[..., Any]", item)
            # Read a flow's `reads`, not its `inlets`: computing those calls this function.
            names = ("outlets", "inlets") if isinstance(item, Task) else ("produces", "reads")
            found.produces = distinct((*found.produces, *_declared(made, names[0])))
            found.reads = distinct((*found.reads, *_declared(made, names[1])))
            for output in _outputs(made):
                found.outputs.setdefault(output.asset, output)
            waiting.append(inspect.unwrap(made.fn))
        elif isinstance(item, FunctionType) and (item.__module__ or "").partition(".")[0] == package:
            waiting.extend(reversed(list(objects_named(item))))
        elif isinstance(item, list | tuple | set | frozenset | dict):
            waiting.extend(reversed(_members(cast("Iterable[object]", item))))
    return found


def _declared(made: object, attribute: str) -> Iterable[Outlet]:
    """Return the outlets or inlets of a task or a flow; a plain Prefect task or flow has none."""
    return cast("tuple[Outlet, ...]", getattr(made, attribute, None) or ())


def _outputs(made: Task[..., Any] | Flow[..., Any]) -> Iterator[Output]:
    """Yield what a task makes, with its inlets and its code version; aliases stand for no data (8.1)."""
    if isinstance(made, Task):
        inlets = tuple(each.token for each in _declared(made, "inlets") if not isinstance(each, AssetAlias))
        version = cast("str | None", getattr(made, "code_version", None))
        for outlet in _declared(made, "outlets"):
            if not isinstance(outlet, AssetAlias):
                yield Output(outlet.token, inlets, code_version_of(outlet) or version)


def _members(container: Iterable[object]) -> list[object]:
    items = list(cast("Mapping[object, object]", container).values() if isinstance(container, Mapping) else container)
    return items if len(items) <= _LARGEST_CONTAINER else []
