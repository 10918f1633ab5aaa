"""Everything that relies on Prefect's internals; `tests/integration/test_prefect_internals.py` checks each part."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import certifi
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import FlowRunContext
from prefect.settings import PREFECT_API_SSL_CERT_FILE, Settings, get_current_settings

from assetflow.errors import UnsupportedPrefect

if TYPE_CHECKING:
    from fastapi import FastAPI
    from prefect.runner._flow_run_executor import FlowRunExecutor
    from prefect.runner._starter_engine import EngineCommandStarter
    from prefect.server.schemas.schedules import SCHEDULE_TYPES
    from prefect.transactions import BaseTransaction


@contextmanager
def needed_for(feature: str) -> Generator[None]:
    """Turn the failure to import or find something of Prefect's inside the block into an error that names the feature.

    Parameters:
        feature: what does not work without it, such as "a data interval".

    Raises:
        UnsupportedPrefect: this version of Prefect does not have it.
    """
    try:
        yield
    except (ImportError, AttributeError) as error:
        raise UnsupportedPrefect(
            f"{feature} does not work with Prefect {version('prefect')}, which has changed inside: {error}",
            fix="Install a version of Prefect that this assetflow supports (`pip install 'prefect>=3.9.1,<3.10'`), "
            "or a newer assetflow",
        ) from error


_COMMIT = "Recording an update when its task completes"


def ends_completed(result: object) -> bool:
    """Return True if a task that returns `result` ends in a COMPLETED state with the name Completed. Contract 2.1.

    This follows Prefect's `return_value_to_state`: a state made by hand becomes the task's state; states of other runs
    are summed up, whatever their names; anything else is data.
    """
    if isinstance(result, State):
        state = cast("State[Any]", result)
        return state.is_completed() and (state.name == "Completed" or not _is_own(state))
    with needed_for(_COMMIT):
        from prefect.states import is_state_iterable
    if is_state_iterable(result):
        return all(cast("State[Any]", each).is_completed() for each in cast("list[object]", result))
    return True


def ends_skipped(result: object) -> bool:
    """Return True if a task that returns `result` ends in a COMPLETED state with the name Skipped. Contract 2.1."""
    if not isinstance(result, State):
        return False
    state = cast("State[Any]", result)
    return _is_own(state) and state.is_completed() and state.name == "Skipped"


def _is_own(state: State[Any]) -> bool:
    """Return True if a state is one that the task has made, not that of another run."""
    return state.state_details.flow_run_id is None and state.state_details.task_run_id is None


def in_user_transaction() -> bool:
    """Return True if the current task runs inside a user's `transaction()`, also one around a task that called it.

    Each task has a transaction of its own. That one and those that a user opens inside the task have the task run's id
    in their logger; the task's own is the outermost of them.
    """
    return any(_users(list(_transactions())))


def _transactions() -> Iterator[BaseTransaction]:
    """Yield the active transactions, from the innermost to the outermost."""
    with needed_for(_COMMIT):
        from prefect.transactions import get_transaction
    current = get_transaction()
    while current is not None:
        yield current
        current = current.get_parent()


def _users(transactions: list[BaseTransaction]) -> Iterator[bool]:
    """Yield, for each transaction from the outermost to the innermost, True if a user opened it."""
    seen: set[str] = set()
    for each in reversed(transactions):
        extra = cast("dict[str, object]", getattr(each.logger, "extra", None) or {})
        task_run = extra.get("task_run_id")
        yield task_run is None or str(task_run) in seen
        seen.add(str(task_run))


def on_commit_of_task(hook: Callable[[BaseTransaction], None]) -> None:
    """Run the hook when the transaction of the current task commits. If the hook raises, the task is rolled back."""
    # A task runs in a transaction of its own.
    next(_transactions()).on_commit_hooks.append(hook)


def task_key_of(fn: Callable[..., object]) -> str:
    """Return the key that Prefect gives the task of this function: its name and a hash of its code."""
    with needed_for("A task with outlets or inlets"):
        from prefect.tasks import (
            _generate_task_key,  # pyright: ignore[reportPrivateUsage]
        )
    return _generate_task_key(fn)


def flow_run_contexts() -> Iterator[FlowRunContext]:
    """Yield the flow runs around this code in this process, from the innermost to the root."""
    context = FlowRunContext.get()
    while context is not None:
        yield context
        with needed_for("A run inside another one"):
            token = context._token  # pyright: ignore[reportPrivateUsage]
        before = None if token is None else token.old_value
        context = before if isinstance(before, FlowRunContext) else None


def deployment_id() -> UUID | None:
    """Return the deployment of the run around this code, also on a remote worker, or `None` in a run without one.

    `prefect.runtime.deployment.id` would ask the server in each run that has none.
    """
    for context in flow_run_contexts():
        if context.flow_run is not None and context.flow_run.deployment_id is not None:
            return context.flow_run.deployment_id
    with needed_for("The deployment of an update that is made on a remote worker"):
        from prefect.context import (
            _deployment_id,  # pyright: ignore[reportPrivateUsage]
        )
    return _deployment_id.get()


CLOCK_CHANGE = timedelta(hours=3)
"""No clock is set forward or back by more."""


def schedule_dates(schedule: SCHEDULE_TYPES, start: datetime, end: datetime) -> list[datetime]:
    """Return a schedule's times from `start` to `end`, both included, in UTC: at most the first thousand.

    The public `get_dates` is a coroutine, though it never waits, and tasks are not asynchronous.
    """
    with needed_for("A data interval"):
        # In the hours of a change of the clock, Prefect compares what the clock shows: it may stop too early.
        until = end + CLOCK_CHANGE
        dates = schedule._get_dates_generator(start=start, end=until)  # pyright: ignore[reportPrivateUsage]
    found = {datetime.fromisoformat(each.isoformat()).astimezone(UTC) for each in dates}
    # For the same reason, it also returns times before `start`.
    return sorted(each for each in found if start <= each <= end)


def pass_requests_through(middleware: type) -> None:
    """Let the Prefect server that this process starts pass each request through an ASGI middleware, the outermost.

    `prefect server start` calls the factory, and so do services of the server that call its API within the process:
    they get the same application again.
    """
    with needed_for("One writer at a time in a Prefect server on SQLite"):
        from prefect.server.api import server

        create_app = server.create_app

    def create(*args: Any, **given: Any) -> FastAPI:
        app = create_app(*args, **given)
        if not any(cast(object, each.cls) is middleware for each in app.user_middleware):
            app.add_middleware(middleware)
        return app

    server.create_app = create


def leave_websockets_out_of_the_limit() -> None:
    """Let the Prefect server on SQLite that this process starts limit requests only, and not websockets.

    Prefect lets 100 connections in at a time. A flow run keeps two websockets open until it ends, and needs requests to
    end: from fifty runs at a time on, no request would get in for ever.
    """
    with needed_for("Many flow runs at a time on a Prefect server on SQLite"):
        from prefect.server.api import server

        limited = server.RequestLimitMiddleware

    class RequestLimit(limited):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "websocket":
                await self.app(scope, receive, send)
            else:
                await super().__call__(scope, receive, send)

    server.RequestLimitMiddleware = RequestLimit


# For the run that this task of a process worker starts: its hooks, and if its command stands for Prefect's own.
_command_run: ContextVar[tuple[object, bool] | None] = ContextVar("_command_run", default=None)


@contextmanager
def start_by_command(hooks: object, *, as_engine: bool) -> Generator[None]:
    """Let the process worker of this process start a run with a command, within this context, in another way.

    Prefect's worker loads the flow in its own process for such a run, to call its hooks.

    Parameters:
        hooks: what calls the hooks instead.
        as_engine: what Prefect does for a run without a command counts: the run has a process group, which is killed as
            a whole, and its `env` counts more than the worker's settings.
    """
    _replace_executor_context()
    token = _command_run.set((hooks, as_engine))
    try:
        yield
    finally:
        _command_run.reset(token)


def _replace_executor_context() -> None:
    with needed_for("A warm run"):
        from prefect.workers import process

        original = process.FlowRunExecutorContext  # pyright: ignore[reportPrivateImportUsage]
    if original.__module__ == __name__:
        return

    class CommandRunContext(original):
        def create_executor(
            self, flow_run: FlowRun, starter: EngineCommandStarter, *args: Any, **given: Any
        ) -> FlowRunExecutor:
            chosen = _command_run.get()
            # Prefect gives this for a run with a command.
            if chosen is not None and given.pop("resolve_flow", None) is not None:
                given["hook_runner"], as_engine = chosen
                starter._isolate_process_group = as_engine  # pyright: ignore[reportPrivateUsage]
                starter._env_overrides_settings = as_engine  # pyright: ignore[reportPrivateUsage]
            return super().create_executor(flow_run, starter, *args, **given)

    process.FlowRunExecutorContext = CommandRunContext  # pyright: ignore[reportPrivateImportUsage]


async def call_hooks(flow_run: FlowRun, state: State[Any]) -> None:
    """Load the flow of a run in this process, and call its hooks for a state, as Prefect's runner does."""
    with needed_for("A hook of a warm run"):
        from prefect.flows import load_flow_from_flow_run
        from prefect.runner._hook_runner import HookRunner

    hooks = HookRunner(resolve_flow=load_flow_from_flow_run)
    # Each does nothing unless the state is of its kind.
    await hooks.run_cancellation_hooks(flow_run, state)
    await hooks.run_crashed_hooks(flow_run, state)


def share_certificates() -> None:
    """Let the HTTP clients that Prefect makes in this process, and in its forks, read the trusted certificates once.

    Each client reads them anew otherwise, which takes 20 ms of CPU time, also for an address without TLS. A flow run
    makes seven clients before the first line of its flow.
    """
    with needed_for("A warm run"):
        from prefect._internal import version_checking
        from prefect.client import orchestration

        for module in (orchestration, version_checking):
            _ = module.ssl.create_default_context
            module.ssl = _SHARED_SSL  # pyright: ignore[reportAttributeAccessIssue]
    with suppress(OSError):
        _shared_context(cafile=PREFECT_API_SSL_CERT_FILE.value() or certifi.where())


def _shared_context(*, cafile: str | None = None) -> ssl.SSLContext:
    # Without a file, Prefect changes what it gets.
    return ssl.create_default_context() if cafile is None else _context_of(cafile, Path(cafile).stat().st_mtime_ns)


@cache
def _context_of(cafile: str, _changed: int) -> ssl.SSLContext:
    """Return the context for a file that was last changed at this time."""
    return ssl.create_default_context(cafile=cafile)


_SHARED_SSL = SimpleNamespace(**{**vars(ssl), "create_default_context": _shared_context})


def remember_environment() -> None:
    """Let Prefect compute the environment variables of this process's settings once: 20 ms of CPU time, twice a run."""
    settings = get_current_settings()
    with needed_for("A warm run"):
        compute = Settings.to_environment_variables
    known = compute(settings, exclude_unset=True)

    def remembered(self: Settings, exclude_unset: bool = False, *args: bool, **given: bool) -> dict[str, str]:
        if self is settings and exclude_unset and not args and not given:
            return dict(known)
        return compute(self, exclude_unset, *args, **given)

    Settings.to_environment_variables = remembered
