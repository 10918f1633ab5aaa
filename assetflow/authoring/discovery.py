"""Find the objects that a function's code names, by reading its bytecode.

`json.load` is not the global `load`, and a variable of the function hides a global of the same name.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from prefect import Flow, Task
from prefect.tasks import TaskOptions

from assetflow.core.values.assets import Asset, AssetAlias, Outlet, check_code_version, distinct
from assetflow.core.values.conditions import ConditionLike, Token
from assetflow.core.values.keeping import Output
from assetflow.prefect_io.internals import flow_run_contexts

if TYPE_CHECKING:
    from pathlib import Path

    from assetflow.authoring.checks import Checks

_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_FREE = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
# What is called of an asset definition to run it: itself, or a copy with other options.
_RUN: tuple[list[str], ...] = ([], ["with_options"])
_NOTHING = frozenset({"CACHE", "EXTENDED_ARG", "NOP"})


@dataclass(frozen=True)
class _Mention:
    """A place in the code such as `tasks.load()`: a name, and the attributes that follow it."""

    name: str
    attributes: tuple[str, ...]
    is_free: bool
    is_called: bool


def objects_named(fn: FunctionType) -> Iterator[object]:
    """Yield the objects that a function's code, and the code of functions in it, refers to by name, in order.

    An asset definition counts only where it is called: elsewhere it stands for its assets.
    """
    mentions = list(_mentions(fn.__code__))
    closure = _closure(fn)
    for each in mentions:
        value = closure.get(each.name) if each.is_free else fn.__globals__.get(each.name)
        left = list(each.attributes)
        while left and isinstance(value, ModuleType):
            value = getattr(value, left.pop(0), None)
        if isinstance(value, ModuleType):
            yield from _attributes_somewhere(value, mentions)
        elif value is not None and (not _is_asset_definition(value) or (each.is_called and left in _RUN)):
            yield value


def _attributes_somewhere(module: ModuleType, mentions: list[_Mention]) -> Iterator[object]:
    """Yield the tasks of a module that goes through a variable, by the attributes that the code reads of anything."""
    for name in dict.fromkeys(name for each in mentions for name in each.attributes):
        value: object = getattr(module, name, None)
        if not _is_asset_definition(value) and isinstance(value, Task | Flow):
            yield cast(object, value)


def _is_asset_definition(value: object) -> bool:
    return isinstance(value, Flow) and isinstance(value, ConditionLike)


def _mentions(code: CodeType, hidden: frozenset[str] = frozenset()) -> Iterator[_Mention]:
    """Yield what the code mentions.

    Parameters:
        hidden: the variables of the functions around it, which get their values only in a call.
    """
    hidden |= set(code.co_cellvars)
    steps = [each for each in dis.get_instructions(code) if each.opname not in _NOTHING]
    # In the body of a class, what was assigned there comes first.
    own = {each.argval for each in steps if each.opname == "STORE_NAME"}
    for place, step in enumerate(steps):
        is_free = step.opname in _FREE
        if (is_free and step.argval not in hidden) or (step.opname in _GLOBAL and step.argval not in own):
            yield _mention(steps, place, is_free=is_free)
        elif step.opname in _ATTRIBUTE and (not place or steps[place - 1].opname not in _GLOBAL | _FREE | _ATTRIBUTE):
            # Of something that has no name here: a variable, or the result of a call.
            yield _Mention("", (step.argval,), is_free=True, is_called=False)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _mentions(constant, hidden)


def _mention(steps: list[dis.Instruction], place: int, *, is_free: bool) -> _Mention:
    end = place + 1
    while end < len(steps) and steps[end].opname in _ATTRIBUTE:
        end += 1
    names = tuple(str(each.argval) for each in steps[place:end])
    return _Mention(names[0], names[1:], is_free, _is_called(steps, place, end))


def _is_called(steps: list[dis.Instruction], place: int, end: int) -> bool:
    """Return True if the code prepares to call what the steps from `place` to before `end` load."""
    last = steps[end - 1]
    if last.opname == "LOAD_METHOD":
        return True
    if last.opname == "LOAD_GLOBAL" or (last.opname == "LOAD_ATTR" and sys.version_info >= (3, 12)):
        prepares = bool((last.arg or 0) & 1)
    else:
        prepares = False
    around = steps[place - 1 : place] if sys.version_info < (3, 13) else steps[end : end + 1]
    return prepares or any(each.opname == "PUSH_NULL" for each in around)


def _closure(fn: FunctionType) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            # Assigned later in the enclosing function.
            continue
    return found


class TaskKeywords(TaskOptions, total=False):
    """The options of Prefect's `task`, the version of the task's code, and the checks of its outlets."""

    code_version: str | None
    checks: Checks | None
    keep_failed: str | Path | None


def read_code_version(value: object) -> str | None:
    """Return the value of `code_version=`, unchanged.

    Raises:
        InvalidSchedule: it is not a text of 1 to 250 characters, or it is blank. Contract 8.2.
    """
    return None if value is None else check_code_version(value)


def code_version_of(outlet: Outlet) -> str | None:
    """Return the code version that an outlet gives, which counts before those of its task and its flow."""
    return outlet.code_version if isinstance(outlet, Asset) else None


def flow_code_version() -> str | None:
    """Return the code version of the running flow, or that of the flow that it belongs to; `None` without one."""
    for context in flow_run_contexts():
        version = getattr(context.flow, "code_version", None)
        if isinstance(version, str):
            return version
    return None


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
    for item in reached(fn):
        if isinstance(item, Task | Flow):
            made = cast("Task[..., Any] | Flow[..., Any]", item)
            # Read a flow's `reads`, not its `inlets`: computing those calls this function.
            names = ("outlets", "inlets") if isinstance(item, Task) else ("produces", "reads")
            found.produces = distinct((*found.produces, *_declared(made, names[0])))
            found.reads = distinct((*found.reads, *_declared(made, names[1])))
            for output in _outputs(made):
                found.outputs.setdefault(output.asset, output)
    return found


def reached(fn: Callable[..., object]) -> Iterator[object]:
    """Yield the tasks, the flows and the functions of its own package that a function leads to, itself first."""
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
            yield cast(object, item)
            waiting.append(inspect.unwrap(cast("Task[..., Any] | Flow[..., Any]", item).fn))
        elif isinstance(item, FunctionType) and (item.__module__ or "").partition(".")[0] == package:
            yield item
            waiting.extend(reversed(list(objects_named(item))))
        elif isinstance(item, list | tuple | set | frozenset | dict):
            waiting.extend(reversed(_members(cast("Iterable[object]", item))))


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
