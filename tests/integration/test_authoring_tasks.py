"""Tasks with outlets on a real Prefect server: when an event is made, when not, and with which extra (chapter 2)."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest
from prefect import task as prefect_task
from prefect.cache_policies import INPUTS
from prefect.client.schemas.objects import State
from prefect.context import TaskRunContext
from prefect.states import Completed, Failed

from assetflow import Metadata, OutletEvents, Skip, flow, task
from assetflow.authoring.recording import current_recording
from assetflow.errors import InvalidEvent, InvalidFlow, OutletError, RecordingFailed
from assetflow.types import AssetTask
from tests.integration.recorded import fresh, in_flow, new_events

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.usefixtures("prefect_here")]

A, B, UNRELATED = fresh("a"), fresh("b"), fresh("unrelated")


@task(outlets=[A])
def plain(value: int = 1) -> int:
    return value


@task(outlets=[A])
async def asynchronous(value: int = 1) -> int:
    await asyncio.sleep(0)
    return value


@task(outlets=[A])
def generator(value: int = 1) -> Generator[Metadata, None, int]:
    yield Metadata(A, {"value": value})
    return value


@task(outlets=[A])
async def async_generator(value: int = 1) -> AsyncGenerator[Metadata]:
    yield Metadata(A, {"value": value})


@pytest.mark.parametrize("made", [plain, generator])
def test_called_submitted_mapped_and_nested_tasks_make_an_event_each(made: AssetTask[..., int]) -> None:
    @task(outlets=[B])
    def nesting() -> int:
        return made(5)

    def body() -> list[int]:
        mapped = made.map([3, 4]).result()
        return [made(1), made.submit(2).result(), *mapped, nesting(), made.with_options(name="other")(6)]

    with new_events(A, B) as events:
        assert in_flow(body) == [1, 2, 3, 4, 5, 6]
    assert len(events) == 7
    assert [event.asset for event in events[-3:]] == [A, B, A]
    assert len({event.origin.task_run.id for event in events if event.origin.task_run}) == 7


async def test_async_tasks_make_an_event_each() -> None:
    @flow
    async def body() -> int:
        await async_generator(2)  # pyright: ignore[reportGeneralTypeIssues]
        async_generator.submit(3).wait()
        return await asynchronous(1)

    with new_events(A) as events:
        assert await body() == 1
    assert [event.extra for event in events] == [{"value": 2}, {"value": 3}, {}]


@pytest.mark.rule("2.2")
def test_the_event_tells_where_it_comes_from_and_large_parameters_stay_at_home() -> None:
    @flow(name="origin-flow")
    def body(day: str = "monday") -> None:
        plain(len(day))

    with new_events(A) as events:
        body("sunday")
        body("x" * 20_000)
    run, large = (event.source_flow_run for event in events)
    assert large is not None
    assert large.parameters is None
    assert run is not None
    assert (run.flow_name, run.parameters, run.deployment_id) == ("origin-flow", {"day": "sunday"}, None)
    assert run.scheduled_time is not None
    assert (run.data_interval_start, run.data_interval_end) == (None, None)
    task_run = events[0].source_task_run
    assert task_run is not None
    assert task_run.name.startswith("plain")


def ends(result: Any = None, error: Exception | None = None) -> AssetTask[..., Any]:
    @task(outlets=[A])
    def ending() -> Any:
        if error is not None:
            raise error
        return result() if callable(result) else result

    return ending


@prefect_task
def upstream(*, fails: bool) -> None:
    if fails:
        raise ValueError("upstream fails")


@pytest.mark.rule("2.1")
@pytest.mark.parametrize(
    ("result", "error", "made"),
    [
        # tests/integration/test_prefect_internals.py has every other result.
        (None, None, 1),
        (lambda: Completed(name="Skipped"), None, 0),
        (Failed, None, 0),
        (lambda: [upstream(fails=fails, return_state=True) for fails in (False, False)], None, 1),
        (lambda: [upstream(fails=fails, return_state=True) for fails in (False, True)], None, 0),
        (None, ValueError("broken"), 0),
        (None, Skip("nothing new"), 0),
    ],
)
def test_only_a_task_that_ends_completed_makes_events(result: Any, error: Exception | None, made: int) -> None:
    with new_events(A) as events:
        state: State[Any] = in_flow(lambda: ends(result, error)(return_state=True))
    assert len(events) == made
    assert (state.is_completed() and state.name == "Completed") == bool(made)
    if isinstance(error, Skip):
        assert (state.name, state.message) == ("Skipped", "nothing new")


@pytest.mark.rule("2.1")
def test_a_cached_task_makes_none() -> None:
    key = fresh().uri

    @task(outlets=[A], cache_policy=INPUTS, persist_result=True)
    def cached(key: str) -> str:
        return key

    with new_events(A) as events:
        states = in_flow(lambda: [cached(key, return_state=True).name for _ in range(2)])
    assert states == ["Completed", "Cached"]
    assert len(events) == 1


@pytest.mark.rule("2.3")
def test_a_retry_is_the_same_event_and_starts_empty() -> None:
    @task(outlets=[A], retries=2)
    def retried(outlet_events: OutletEvents) -> None:
        context = TaskRunContext.get()
        assert context is not None
        recording = current_recording()
        assert recording is not None
        assert recording.attempt == context.task_run.run_count
        outlet_events[A].extra[f"attempt_{recording.attempt}"] = True
        if recording.attempt < 3:
            raise ValueError("not yet")

    with new_events(A) as events:
        in_flow(retried)
    assert [event.extra for event in events] == [{"attempt_3": True}]


# Extra


@pytest.mark.rule("2.3")
@pytest.mark.parametrize(
    ("say", "error"),
    [
        # tests/core/values/test_outcome.py has every other one.
        (lambda: Metadata(UNRELATED, {}), OutletError),
        (lambda: Metadata(A, {"x": object()}), RecordingFailed),
        (lambda: {"row_count": 1}, InvalidEvent),
        (lambda: Metadata("orders", {}), InvalidFlow),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_cannot_be_said_fails_the_task_without_any_event(say: Any, error: type[Exception]) -> None:
    @task(outlets=[A, B])
    def wrong() -> Generator[Any]:
        yield Metadata(B, {"said": "before"})
        yield say()

    with new_events(A, B) as events:
        state = in_flow(lambda: wrong(return_state=True))
    assert state.is_failed()
    with pytest.raises(error) as caught:
        state.result(raise_on_failure=True)
    assert "wrong" in str(caught.value)
    assert not events
