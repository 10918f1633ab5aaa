"""`@task`: an ordinary Prefect task with inlets and outlets, and the types of what its calls return."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ParamSpec,
    TypeVar,
    Unpack,
    cast,
    overload,
)

import prefect
from prefect import Task
from prefect.tasks import TaskOptions

from assetflow.authoring.attempts import DECLARATION, TaskDeclaration, task_function
from assetflow.authoring.checks import Checks, read_checks
from assetflow.authoring.discovery import read_code_version
from assetflow.authoring.metadata import OutletValues, to_outlets
from assetflow.core.values.assets import Outlet
from assetflow.errors import InvalidFlow
from assetflow.prefect_io.internals import task_key_of

if TYPE_CHECKING:
    from assetflow.authoring.decorators import OutletTaskDecorator

P = ParamSpec("P")
R = TypeVar("R")


class AssetTask(Task[P, R]):
    """A Prefect task with inlets and outlets; what `@task` and `@spark_task` return.

    >>> from assetflow import Asset, task
    >>> @task(inlets=[Asset("s3://shop/orders")], outlets=[Asset("s3://shop/totals")])
    ... def add_up(): ...
    >>> add_up.inlets, add_up.outlets
    ((Asset('s3://shop/orders'),), (Asset('s3://shop/totals'),))

    It is called, submitted and mapped as any Prefect task.
    """

    @property
    def outlets(self) -> tuple[Outlet, ...]:
        """The assets, references and aliases that the task updates."""
        return _declaration(self).outlets

    @property
    def code_version(self) -> str | None:
        """The version of the task's code; `None` if it has none of its own."""
        return _declaration(self).code_version

    @property
    def inlets(self) -> tuple[Outlet, ...]:
        """The assets, references and aliases that the task reads."""
        return _declaration(self).inlets

    def with_options(  # pyright: ignore[reportIncompatibleMethodOverride]  the options are those of `task`
        self,
        *,
        inlets: OutletValues | None = None,
        outlets: OutletValues | None = None,
        code_version: str | None = None,
        **options: Unpack[TaskOptions],
    ) -> AssetTask[P, R]:
        """Return a copy of the task with other options.

        Parameters:
            inlets: what the copy reads; `None` keeps the inlets.
            outlets: what the copy updates; `None` keeps the outlets.
            code_version: the version of the copy's code; `None` keeps it.
            options: everything that `with_options` of a Prefect task takes.

        Raises:
            InvalidFlow: an inlet or outlet is not an asset, a reference or an alias.
        """
        base = self
        if inlets is not None or outlets is not None or code_version is not None:
            declared = TaskDeclaration(
                self.outlets if outlets is None else to_outlets(outlets, "outlets"),
                self.inlets if inlets is None else to_outlets(inlets, "inlets"),
                read_code_version(code_version) or self.code_version,
                _declaration(self).checks,
            )
            base = AssetTask(task_function(cast(Any, self.fn).__wrapped__, declared))
            # Prefect keeps there the object whose method the task is.
            base.fn.__dict__ = {**self.fn.__dict__, **base.fn.__dict__}
            base.__dict__ = {**self.__dict__, "fn": base.fn}
        changed = super(AssetTask, base).with_options(**cast("dict[str, Any]", options))
        changed.task_key = self.task_key
        return _as_asset_task(changed)


@overload
def task(fn: Callable[P, R], /) -> AssetTask[P, R]: ...
@overload
def task(
    *,
    outlets: OutletValues,
    inlets: OutletValues = (),
    code_version: str | None = None,
    checks: Checks | None = None,
    keep_failed: str | Path | None = None,
    **options: Unpack[TaskOptions],
) -> OutletTaskDecorator: ...
@overload
def task(
    *, inlets: OutletValues = (), code_version: str | None = None, **options: Unpack[TaskOptions]
) -> Callable[[Callable[P, R]], AssetTask[P, R]]: ...
def task(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    inlets: OutletValues = (),
    outlets: OutletValues = (),
    code_version: str | None = None,
    checks: Checks | None = None,
    keep_failed: str | Path | None = None,
    **options: Unpack[TaskOptions],
) -> Any:
    """Turn a function into a Prefect task that names the assets it updates and reads.

    >>> from assetflow import Asset, Metadata, task
    >>> orders = Asset("s3://shop/orders")
    >>> @task(outlets=[orders], retries=2)
    ... def load(day: str):
    ...     yield Metadata(orders, {"day": day})
    ...     return 3
    >>> load.outlets
    (Asset('s3://shop/orders'),)

    When the task ends Completed, assetflow records an update of each outlet, and the flows scheduled on them may run.
    Recording is the last step of an attempt. If it fails, the attempt fails; its data is written, and a retry is safe.

    The function may have the parameters `outlet_events`, `inlet_events` and `triggering_asset_events`; callers leave
    them out. With outlets, a generator function is run to its end, and its `return` is the result. Contract 2.1 to 2.4.

    Parameters:
        fn: the function, if the decorator has no options.
        inlets: what the task reads: an asset, reference or alias, or a list or set of them. Inlets never start a run.
        outlets: what the task updates: an asset, reference or alias, or a list or set of them.
        code_version: the version of the task's code, a text that you change when the task computes something else. Then
            Eager flows make its outlets again. By default that of the flow (contract 8.2).
        checks: the checks of each outlet, from `assetflow.checks`. They see what the task publishes before anybody else
            does (contract chapter 12).
        keep_failed: a folder for data that a check has held back; by default it is deleted.
        options: everything that Prefect's `task` takes.

    Returns:
        An `AssetTask`, with the signature of the function.

    Raises:
        InvalidFlow: an inlet or outlet is not an asset, a reference or an alias; or `fn` is not a function.
        InvalidCheck: a check is not one, is not of an outlet, or cannot hold data back (contract 12.1, 12.4).
        InvalidSchedule: `code_version` is not a text of 1 to 250 characters, or blank (contract 8.2).
        OutletError: raised by the run: the task stated a fact about an asset that is not one of its outlets.
        InvalidEvent: raised by the run: the task yielded something that is not `Metadata`, or a key is not valid.
        RecordingFailed: raised by the run: the updates could not be recorded; a retry is safe.
        CheckFailed: raised by the run: data did not pass a check, or was not published for it to see (contract 12.2).
    """
    declared = to_outlets(outlets, "outlets"), to_outlets(inlets, "inlets")
    declared_checks = read_checks(checks, declared[0], keep_failed)
    declaration = TaskDeclaration(*declared, read_code_version(code_version), declared_checks)

    def decorate(function: Callable[..., Any]) -> AssetTask[..., Any]:
        if isinstance(function, classmethod | staticmethod):
            kind = type(cast(object, function)).__name__
            raise InvalidFlow(f"{function!r} is not a function yet", fix=f"Put @task below @{kind}")
        if not inspect.isroutine(function):
            raise InvalidFlow(f"{function!r} is not a function", fix="Put @task above a def")
        made = prefect.task(task_function(function, declaration), **cast("dict[str, Any]", options))
        # Prefect would compute the key from the wrapper's code, which is the same for all tasks.
        made.task_key = task_key_of(function)
        return _as_asset_task(made)

    return decorate if fn is None else decorate(fn)


def _as_asset_task(made: Task[..., Any]) -> AssetTask[..., Any]:
    made.__class__ = AssetTask
    return cast("AssetTask[..., Any]", made)


def _declaration(made: AssetTask[..., Any]) -> TaskDeclaration:
    return getattr(made.fn, DECLARATION, TaskDeclaration())
