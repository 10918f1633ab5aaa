"""What assetflow relies on inside Prefect; if one of these fails, Prefect has changed there."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from prefect import flow, task
from prefect.client.schemas.objects import State
from prefect.results import ResultStore
from prefect.states import Cancelled, Completed, Crashed, Failed, Paused, return_value_to_state
from prefect.transactions import atransaction, transaction

from assetflow.prefect_io.internals import (
    deployment_id,
    ends_completed,
    flow_run_contexts,
    in_user_transaction,
    on_commit_of_task,
    task_key_of,
)
from tests.integration.recorded import in_flow

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_here")]


def of_other_run(state: State[Any]) -> State[Any]:
    state.state_details.task_run_id = uuid4()
    return state


@pytest.mark.parametrize(
    "result",
    [
        None,
        1,
        [],
        {"a": 1},
        Completed(),
        Completed(name="Skipped"),
        Completed(name="Completed"),
        Failed(),
        Cancelled(),
        Crashed(),
        Paused(),
        of_other_run(Completed()),
        of_other_run(Completed(name="Cached")),
        of_other_run(Failed()),
        [of_other_run(Completed()), of_other_run(Completed(name="Skipped"))],
        [Completed(), Failed()],
        (Completed(), Completed()),
        [Completed(), Paused()],
        [Completed(), 1],
        {"a": Failed()},
    ],
    ids=repr,
)
async def test_a_result_is_judged_as_prefect_judges_it(result: object) -> None:
    expected = ends_completed(result)
    state: State[Any] = await return_value_to_state(result, result_store=ResultStore())
    assert expected == (state.is_completed() and state.name == "Completed")


@task
def asking() -> bool:
    return in_user_transaction()


@task
def nesting() -> tuple[bool, bool, bool]:
    plain = asking()
    with transaction():
        inside = asking()
        submitted = asking.submit().result()
    return plain, inside, submitted


def test_a_users_transaction_is_told_from_those_of_tasks() -> None:
    def body() -> list[object]:
        outside = [asking(), nesting(), asking.submit().result()]
        with transaction():
            inside = [asking(), nesting(), asking.submit().result()]
        return outside + inside

    assert in_flow(body) == [False, (False, True, True), False, True, (True, True, True), True]


async def test_an_async_transaction_is_told_too() -> None:
    @task
    async def asking_async() -> bool:
        return in_user_transaction()

    @flow
    async def body() -> list[bool]:
        outside = await asking_async()
        async with atransaction():
            return [outside, await asking_async()]

    assert await body() == [False, True]


def test_a_hook_runs_when_the_users_transaction_commits() -> None:
    order: list[str] = []

    @task
    def hooked() -> None:
        on_commit_of_task(lambda _: order.append("commit"))

    def body() -> None:
        with transaction():
            hooked()
            order.append("end of block")

    in_flow(body)
    assert order == ["end of block", "commit"]


def test_the_flow_runs_around_this_code_are_known_up_to_the_root() -> None:
    @task
    def names() -> list[str]:
        return [context.flow.name for context in flow_run_contexts() if context.flow]

    @flow(name="below")
    def below() -> list[str]:
        return names.submit().result()

    @flow(name="root")
    def root() -> list[str]:
        return below()

    assert root() == ["below", "root"]
    assert list(flow_run_contexts()) == []


def test_a_run_by_hand_has_no_deployment() -> None:
    assert in_flow(deployment_id) is None
    assert deployment_id() is None


def test_the_key_of_a_task_is_that_of_its_function() -> None:
    assert task_key_of(asking.fn) == asking.task_key
