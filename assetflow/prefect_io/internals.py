"""What relies on how Prefect works inside; `tests/integration/test_prefect_internals.py` watches each part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast
from uuid import UUID

from prefect.client.schemas.objects import State
from prefect.context import (
    FlowRunContext,
    _deployment_id,  # pyright: ignore[reportPrivateUsage]
)
from prefect.states import is_state_iterable
from prefect.tasks import (
    _generate_task_key,  # pyright: ignore[reportPrivateUsage]
)
from prefect.transactions import BaseTransaction, get_transaction


def ends_completed(result: object) -> bool:
    """Whether a task that returns this ends in a state of type COMPLETED that is named Completed (2.1).

    Judges as Prefect's `return_value_to_state`: a state made by hand is the task's own; states of other runs are
    summed up, whatever their names; anything else is data.
    """
    if isinstance(result, State):
        state = cast("State[Any]", result)
        details = state.state_details
        if details.flow_run_id is None and details.task_run_id is None:
            return state.is_completed() and state.name == "Completed"
        return state.is_completed()
    if is_state_iterable(result):
        return all(cast("State[Any]", each).is_completed() for each in cast("list[object]", result))
    return True


def in_user_transaction() -> bool:
    """Whether the task that runs here stands in a `transaction()` of the user, be it around a task that called it.

    Each task has a transaction of its own. It and those that a user opens inside the task carry the task run's id in
    their logger; the engine's is the outermost of them.
    """
    return any(_users(list(_transactions())))


def _transactions() -> Iterator[BaseTransaction]:
    """The active transactions, from the innermost to the outermost."""
    current = get_transaction()
    while current is not None:
        yield current
        current = current.get_parent()


def _users(transactions: list[BaseTransaction]) -> Iterator[bool]:
    """For each transaction, from the outermost to the innermost: whether a user opened it."""
    seen: set[str] = set()
    for each in reversed(transactions):
        extra = cast("dict[str, object]", getattr(each.logger, "extra", None) or {})
        task_run = extra.get("task_run_id")
        yield task_run is None or str(task_run) in seen
        seen.add(str(task_run))


def on_commit_of_task(hook: Callable[[BaseTransaction], None]) -> None:
    """Run the hook when the transaction of the task that runs here commits; if it raises, the task is rolled back."""
    transaction = get_transaction()
    assert transaction is not None, "a task runs in a transaction of its own"
    transaction.on_commit_hooks.append(hook)


def task_key_of(fn: Callable[..., object]) -> str:
    """The key that Prefect gives the task of this function: name and a hash of its code."""
    return _generate_task_key(fn)


def flow_run_contexts() -> Iterator[FlowRunContext]:
    """The flow runs around this code in this process, from the innermost to the root."""
    context = FlowRunContext.get()
    while context is not None:
        yield context
        token = context._token  # pyright: ignore[reportPrivateUsage]
        before = None if token is None else token.old_value
        context = before if isinstance(before, FlowRunContext) else None


def deployment_id() -> UUID | None:
    """The deployment whose run is around this code, on remote workers too; none in a run started by hand.

    `prefect.runtime.deployment.id` asks the server for each run that has none.
    """
    for context in flow_run_contexts():
        if context.flow_run is not None and context.flow_run.deployment_id is not None:
            return context.flow_run.deployment_id
    return _deployment_id.get()
