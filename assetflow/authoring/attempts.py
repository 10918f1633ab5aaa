"""The function that Prefect runs for a task: it runs the user's function and then records the updates.

Sync, async, generator and async generator functions differ only in how they are run to their end. Contract 2.1, 2.3.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Generator
from contextlib import aclosing, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

from prefect.context import TaskRunContext
from prefect.states import Completed

from assetflow.authoring.checks import UNCHECKED, DeclaredChecks
from assetflow.authoring.discovery import flow_code_version
from assetflow.authoring.metadata import Metadata, OutletEvents, Skip
from assetflow.authoring.origin import is_deployed
from assetflow.authoring.past_events.reading import InletEvents, reading
from assetflow.authoring.past_events.sources import newest_events, open_source, pin_of, resolve_outlet
from assetflow.authoring.recording import TaskRecording, deliver, run_logger, sent_unless
from assetflow.authoring.triggering import Call, PublicSignature, triggering_asset_events, wrapper
from assetflow.core.values.assets import Outlet
from assetflow.core.values.events import Recording
from assetflow.crash_points import reach
from assetflow.errors import AssetflowError, InvalidEvent, InvalidFlow
from assetflow.prefect_io.internals import ends_completed, ends_skipped, in_user_transaction, on_commit_of_task
from assetflow.prefect_io.names import EVENTS_PARAMETER
from assetflow.settings import get_settings

DECLARATION = "__assetflow_task__"
FILLED = ("outlet_events", "inlet_events", EVENTS_PARAMETER)


@dataclass(frozen=True)
class TaskDeclaration:
    """What a task reads and updates, its code version and checks: an attribute of the function that Prefect runs."""

    outlets: tuple[Outlet, ...] = ()
    inlets: tuple[Outlet, ...] = ()
    code_version: str | None = None
    checks: DeclaredChecks = UNCHECKED


def task_function(fn: Callable[..., Any], declaration: TaskDeclaration) -> Callable[..., Any]:
    """Return the function of the Prefect task for the user's function.

    A generator function with outlets becomes an ordinary function that runs the generator to its end.
    """
    public = PublicSignature(fn, filled=FILLED)
    start = _Start(fn, declaration, public)
    run = _to_its_end(fn, start) if declaration.outlets else wrapper(fn, start)
    start.wrapper = run
    run.__signature__ = public.signature
    setattr(run, DECLARATION, declaration)
    return run


def _to_its_end(fn: Callable[..., Any], start: _Start) -> Any:
    """Return the function of a task with outlets: it consumes what the user's function yields."""
    if inspect.isasyncgenfunction(fn):
        return _async_generator(fn, start)
    return _async_function(fn, start) if inspect.iscoroutinefunction(fn) else _function(fn, start)


def _function(fn: Callable[..., Any], start: _Start) -> Callable[..., Any]:
    """Behind an ordinary function may be a generator function, or an async one, if another decorator is around it."""
    yields = inspect.isgeneratorfunction(fn) or inspect.isgeneratorfunction(inspect.unwrap(fn))

    @wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        with start(args, kwargs) as attempt:
            result = fn(*attempt.args, **attempt.kwargs)
            if yields and inspect.isgenerator(result):
                with closing(cast("Generator[Any, None, Any]", result)) as items:
                    result = _run_to_end(items, attempt)
            attempt.result = _checked(result)
        return attempt.finish()

    return run


def _checked(result: object) -> object:
    """Return the result of an ordinary function, unless it has only prepared the work.

    Raises:
        InvalidFlow: it is a coroutine or an async generator, which nobody has run.
    """
    if not inspect.iscoroutine(result) and not inspect.isasyncgen(result):
        return result
    if inspect.iscoroutine(result):
        result.close()
    raise InvalidFlow(
        f"the task has outlets, and its function returns a {type(result).__name__} that nothing has run",
        rule="2.1",
        fix="Make the decorator between @task and `async def` async too, or put @task below it",
    )


def _async_function(fn: Callable[..., Any], start: _Start) -> Callable[..., Any]:
    @wraps(fn)
    async def run(*args: Any, **kwargs: Any) -> Any:
        with start(args, kwargs) as attempt:
            attempt.result = await fn(*attempt.args, **attempt.kwargs)
        return await _finished(attempt)

    return run


async def _finished(attempt: Attempt) -> Any:
    """Finish the attempt in a thread. Its time limit may end it meanwhile, but not the thread."""
    is_over = threading.Event()
    try:
        with sent_unless(is_over.is_set):
            return await asyncio.to_thread(attempt.finish)
    except asyncio.CancelledError:
        is_over.set()
        raise


def _run_to_end(items: Generator[Any, None, Any], attempt: Attempt) -> Any:
    """Pass everything that a generator yields to the attempt, and return what the generator returns."""
    while True:
        try:
            item = next(items)
        except StopIteration as end:
            return end.value
        attempt.tell(item)


def _async_generator(fn: Callable[..., Any], start: _Start) -> Callable[..., Any]:
    @wraps(fn)
    async def run(*args: Any, **kwargs: Any) -> Any:
        with start(args, kwargs) as attempt:
            async with aclosing(fn(*attempt.args, **attempt.kwargs)) as items:
                async for item in items:
                    attempt.tell(item)
        return await _finished(attempt)

    return run


class Attempt(Call):
    """One attempt of a task: its arguments, its recording, and its result."""

    def __init__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], recording: TaskRecording, *, in_run: bool
    ) -> None:
        super().__init__(args, kwargs)
        self._recording = recording
        self._in_run = in_run

    def tell(self, item: object) -> None:
        """Add the metadata that the task yielded to the recording.

        Raises:
            InvalidEvent: the task yielded something else. Contract 2.3.
        """
        if not isinstance(item, Metadata):
            raise InvalidEvent(
                f"a task with outlets yielded {item!r}",
                rule="2.3",
                fix="Yield Metadata(asset, {...}) only, and return the result",
            )
        item.tell(self._recording.outcome)

    def finish(self) -> Any:
        """Record the updates if the attempt completed, or that none was needed; return the task's result."""
        skipped = ends_skipped(self.result)
        if not self._recording.outlets or not (skipped or ends_completed(self.result)):
            return self.result
        recording = self._recording.confirm() if skipped else self._recording.complete()
        reach("between-publish-and-record")
        if self._in_run:
            self._warn_of_unknown_names()
        if not self._in_run or not recording.told:
            return self.result
        if not _emits():
            run_logger().info("ASSETFLOW_EMIT=%s: the update is not recorded", get_settings().emit)
        elif in_user_transaction():
            on_commit_of_task(_delivery_of(recording))
        else:
            deliver(recording)
        return self.result

    def fail(self) -> None:
        """Record what the checks of the attempt have held back. If that fails, the error of the task stays."""
        recording = self._recording.fail()
        if not (self._in_run and recording.told and _emits()):
            return
        try:
            deliver(recording)
        except AssetflowError as error:
            run_logger().warning("That a check has failed could not be recorded. %s", error)

    def _warn_of_unknown_names(self) -> None:
        for name in self._recording.outcome.unknown_names():
            run_logger().warning(
                "The outlet Asset.ref(name=%r) gets no update: no asset has this name, as far as is known here. "
                "Give its URI, set ASSETFLOW_API_URL, or update the asset once under this name",
                name,
            )


class _Start:
    """A context manager that begins an attempt each time Prefect or a user calls the task's function."""

    def __init__(self, fn: Callable[..., Any], declaration: TaskDeclaration, public: PublicSignature) -> None:
        self._where = f"task {getattr(fn, '__qualname__', fn)}"
        self._declaration = declaration
        self._public = public
        # The caller runs such a generator, so a context variable that is set here would leak into the caller.
        generates = inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn)
        self._is_lazy = generates and not declaration.outlets
        self.wrapper: object = None

    @contextmanager
    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Generator[Attempt]:
        context = TaskRunContext.get()
        # A task that is called as a plain function, in a unit test or by another task, makes no events.
        in_run = context is not None and context.task.fn is self.wrapper
        task_run, number = (str(context.task_run.id), context.task_run.run_count) if in_run and context else ("", 1)
        recording = self._recording(task_run, number, in_run=in_run)
        inlets = InletEvents(self._declaration.inlets, open_source, pin_of)
        attempt = Attempt(*self._public.arguments(args, kwargs), recording, in_run=in_run)
        self._fill(attempt.kwargs, recording, inlets)
        outlets = recording.active() if recording.outlets else nullcontext()
        inlets_read = nullcontext() if self._is_lazy else reading(self._declaration.inlets)
        with outlets, inlets_read:
            try:
                yield attempt
            except Skip as skip:
                attempt.result = Completed(name="Skipped", message=skip.reason or None)
            except AssetflowError as error:
                attempt.fail()
                # Replace the error by one that names the task; chaining would show the same error twice.
                raise error.at(self._where).with_traceback(error.__traceback__) from error.__cause__
            except Exception:
                attempt.fail()
                raise

    def _recording(self, task_run: str, number: int, *, in_run: bool) -> TaskRecording:
        outlets, checks = self._declaration.outlets, self._declaration.checks
        if not in_run or not outlets:
            return TaskRecording(outlets, task_run, number, checks=checks)
        known = newest_events((*self._declaration.inlets, *triggering_asset_events()))
        code_version = self._declaration.code_version or flow_code_version()
        return TaskRecording(
            outlets,
            task_run,
            number,
            inputs=known,
            code_version=code_version,
            checks=checks,
            resolve_name=resolve_outlet,
        )

    def _fill(self, kwargs: dict[str, Any], recording: TaskRecording, inlets: InletEvents) -> None:
        values: dict[str, Callable[[], object]] = {
            "outlet_events": lambda: OutletEvents(recording.outcome),
            "inlet_events": lambda: inlets,
            EVENTS_PARAMETER: triggering_asset_events,
        }
        for name in self._public.declared:
            if kwargs.get(name) is None:
                kwargs[name] = values[name]()


def _emits() -> bool:
    emit = get_settings().emit
    return emit == "always" or (emit == "deployed" and is_deployed())


def _delivery_of(recording: Recording) -> Callable[[Any], None]:
    def record_asset_events(_: Any) -> None:
        deliver(recording)

    return record_asset_events
