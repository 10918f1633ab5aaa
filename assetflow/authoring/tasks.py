"""`@task`: an ordinary Prefect task that says what it updates and reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast, overload

import prefect
from prefect import Task

from assetflow.authoring.attempts import DECLARED, TaskDeclaration, task_function
from assetflow.authoring.metadata import to_outlets
from assetflow.core.assets import Outlet
from assetflow.errors import InvalidFlow
from assetflow.prefect_io.internals import task_key_of

P = ParamSpec("P")
R = TypeVar("R")


class AssetTask(Task[P, R]):
    """A Prefect task with outlets and inlets. All that is ours hangs on its function, so Prefect can copy it freely."""

    @property
    def outlets(self) -> tuple[Outlet, ...]:
        """What the task updates."""
        return _declaration(self).outlets

    @property
    def inlets(self) -> tuple[Outlet, ...]:
        """What the task reads."""
        return _declaration(self).inlets

    def with_options(self, *, inlets: object = None, outlets: object = None, **options: Any) -> AssetTask[P, R]:
        """The task with other options of Prefect's `with_options`, or other inlets and outlets."""
        base = self
        if inlets is not None or outlets is not None:
            declared = TaskDeclaration(
                self.outlets if outlets is None else to_outlets(outlets, "outlets"),
                self.inlets if inlets is None else to_outlets(inlets, "inlets"),
            )
            base = AssetTask(task_function(cast(Any, self.fn).__wrapped__, declared))
            base.__dict__ = {**self.__dict__, "fn": base.fn}
        changed = cast("Task[..., Any]", super(AssetTask, base).with_options(**options))
        changed.task_key = self.task_key
        return _as_asset_task(changed)


@overload
def task(fn: Callable[P, R], /) -> AssetTask[P, R]: ...
@overload
def task(
    *, inlets: object = (), outlets: object = (), **options: Any
) -> Callable[[Callable[P, R]], AssetTask[P, R]]: ...
def task(fn: Callable[..., Any] | None = None, /, *, inlets: object = (), outlets: object = (), **options: Any) -> Any:
    """A Prefect task. When it ends Completed, its outlets were updated, and the flows scheduled on them may run.

    It is called, submitted, mapped and nested as any task. The function may have the parameters `outlet_events`,
    `inlet_events` and `triggering_asset_events`; nobody needs to pass them. With outlets, a generator function may
    `yield Metadata(asset, extra)` and is run to its end; its `return` is the result.

    The last act of an attempt is to record the updates. If that fails, the attempt fails: the data is written, and a
    retry is safe.

    Parameters:
        inlets: an asset, reference or alias that the task reads, or a list of them. They never schedule anything.
        outlets: an asset, reference or alias that the task updates, or a list of them (2.1).
        options: everything that Prefect's `task` takes.

    Raises:
        InvalidFlow: an inlet or outlet that is neither an asset nor an alias, or something that is no function.
    """
    declaration = TaskDeclaration(to_outlets(outlets, "outlets"), to_outlets(inlets, "inlets"))

    def decorate(function: Callable[..., Any]) -> AssetTask[..., Any]:
        if not inspect.isroutine(function):
            raise InvalidFlow(f"{function!r} is no function", fix="Put @task above a def")
        made = prefect.task(task_function(function, declaration), **options)
        # The code of the wrapper is the same for all tasks; the user's tells them apart.
        made.task_key = task_key_of(function)
        return _as_asset_task(made)

    return decorate if fn is None else decorate(fn)


def _as_asset_task(made: Task[..., Any]) -> AssetTask[..., Any]:
    made.__class__ = AssetTask
    return cast("AssetTask[..., Any]", made)


def _declaration(made: AssetTask[..., Any]) -> TaskDeclaration:
    return getattr(made.fn, DECLARED, TaskDeclaration())
