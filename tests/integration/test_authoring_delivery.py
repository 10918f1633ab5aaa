"""What becomes of an update while Prefect does not answer, or answers oddly; and the exact bodies that it gets."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import httpx
import pytest
import respx
from prefect.client.schemas.objects import State

from assetflow import flow, task
from assetflow.authoring.recording import current_recording
from assetflow.errors import RecordingFailed
from assetflow.prefect_io.recordings import recording_from_artifact, recording_from_prefect_event
from tests.environment.prefect_server import PrefectServer
from tests.integration.recorded import fresh

pytestmark = [pytest.mark.long, pytest.mark.prefect]

A = fresh("a")


@task(outlets=[A], retries=1)
def producing() -> int:
    recording = current_recording()
    assert recording is not None
    return recording.attempt


@pytest.fixture
def router(prefect_here: PrefectServer) -> Iterator[respx.Router]:  # noqa: ARG001
    """Everything passes through to the real server, unless a test says otherwise."""
    with respx.mock(assert_all_called=False) as router:
        yield router


def passing(router: respx.Router) -> None:
    router.route().pass_through()


def run_task() -> State[Any]:
    """The state in which the task ends."""
    found: list[State[Any]] = []

    @flow
    async def body() -> None:
        found.append(producing(return_state=True))

    asyncio.run(body())
    return found[0]


def test_the_bodies_that_prefect_gets(router: respx.Router, prefect_here: PrefectServer) -> None:
    artifact = router.post(f"{prefect_here.api_url}/artifacts/").pass_through()
    events = router.post(f"{prefect_here.api_url}/events").pass_through()
    passing(router)
    assert run_task().is_completed()
    recording = recording_from_artifact({"id": 1, **json.loads(artifact.calls.last.request.content)})
    posted = json.loads(events.calls.last.request.content)
    assert [each["id"] for each in posted] == [str(event.id) for event in recording.events]
    announced = recording_from_prefect_event(posted[0])
    assert announced is not None
    # The task tells when Prefect has stored the artifact: both ways give the updates one instant (9.6).
    assert announced.durable is not None
    assert announced == replace(recording, durable=announced.durable)
    assert posted[0]["resource"]["prefect.resource.id"] == A.uri
    assert "follows" not in posted[0]


def test_a_busy_server_delays_the_task_only(router: respx.Router, prefect_here: PrefectServer) -> None:
    busy = [httpx.Response(503), httpx.Response(503), httpx.ReadTimeout("slow")]
    stored = httpx.Response(201, json={"id": str(UUID(int=1))})
    router.post(f"{prefect_here.api_url}/artifacts/").mock(side_effect=[*busy, stored])
    passing(router)
    state = run_task()
    assert state.is_completed()
    assert state.result() == 1


@pytest.mark.parametrize("answer", [httpx.Response(503), httpx.Response(422, json={"detail": "no"})])
def test_what_cannot_be_recorded_fails_the_attempt_and_a_retry_is_safe(
    router: respx.Router, prefect_here: PrefectServer, monkeypatch: pytest.MonkeyPatch, answer: httpx.Response
) -> None:
    monkeypatch.setenv("ASSETFLOW_RECORDING_TIMEOUT", "0.3")
    route = router.post(f"{prefect_here.api_url}/artifacts/").mock(return_value=answer)
    events = router.post(f"{prefect_here.api_url}/events").pass_through()
    passing(router)
    state = run_task()
    assert state.is_failed()
    with pytest.raises(RecordingFailed) as caught:
        state.result()
    assert "data is written" in str(caught.value)
    assert "retry" in str(caught.value)
    assert A.uri in str(caught.value)
    bodies = {json.loads(call.request.content)["data"].split('"occurred"')[0] for call in route.calls}
    assert len(bodies) == 1, "both attempts have the same ids"
    assert not events.called


@task(outlets=[A], timeout_seconds=1)
async def slow_to_record() -> None: ...


def test_an_async_task_that_timed_out_sends_no_update_later(router: respx.Router, prefect_here: PrefectServer) -> None:
    ended: list[State[Any]] = []
    late: list[httpx.Request] = []

    def busy_until_the_end(request: httpx.Request) -> httpx.Response:
        if ended:
            late.append(request)
            return httpx.Response(201, json={"id": str(UUID(int=1))})
        return httpx.Response(503)

    router.post(f"{prefect_here.api_url}/artifacts/").mock(side_effect=busy_until_the_end)
    passing(router)

    @flow
    async def body() -> None:
        ended.append(await cast(Any, slow_to_record)(return_state=True))

    # It waits for the thread in which the task was about to record.
    asyncio.run(body())
    assert ended[0].name == "TimedOut"
    assert late == []
