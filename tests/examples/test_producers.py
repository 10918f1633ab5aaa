"""Examples 6, 9, 10, 13 and 16, as far as they need no evaluator: what producers record, and what tasks read back."""

from __future__ import annotations

import json
from collections.abc import Generator
from uuid import uuid4

import pytest
import respx

from assetflow import Asset, AssetAlias, InletEvents, Metadata, OutletEvents, Skip, flow, task
from assetflow.authoring.recording import current_recording
from assetflow.core.values.events import AssetEvent
from tests.environment.prefect_server import PrefectServer
from tests.integration.recorded import new_events

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_here")]

# The server is shared with other tests, so the assets have a name of this run.
RUN = uuid4().hex


class TestExample06:
    """The producer's task fails: 0 events. Skips: 0. Completes: 1. Completes and the flow fails afterwards: still 1."""

    @pytest.mark.parametrize(
        ("task_error", "flow_error", "made"),
        [(ValueError("task"), None, 0), (Skip("nothing new"), None, 0), (None, None, 1), (None, ValueError("flow"), 1)],
    )
    async def test(self, task_error: Exception | None, flow_error: Exception | None, made: int) -> None:
        asset = Asset(f"s3://example-06/{RUN}")

        @task(outlets=[asset])
        def produce() -> None:
            if task_error is not None:
                raise task_error

        @flow
        async def producer() -> None:
            produce(return_state=True)
            if flow_error is not None:
                raise flow_error

        with new_events(asset) as events:
            state = await producer(return_state=True)  # pyright: ignore[reportGeneralTypeIssues]
        assert len(events) == made
        assert state.is_completed() == (flow_error is None)


asset_9 = Asset(f"s3://example-09/{RUN}")


class TestExample09:
    """`write_to_s3`: extra is exactly what was said; after a retry only what the last attempt said."""

    async def test_by_metadata(self) -> None:
        @task(outlets=[asset_9])
        def write_to_s3() -> Generator[Metadata]:
            rows = [1, 2, 3]
            yield Metadata(asset_9, {"row_count": len(rows)})

        assert await self.extras(write_to_s3) == [{"row_count": 3}]

    async def test_by_outlet_events(self) -> None:
        @task(outlets=[asset_9])
        def write_to_s3(outlet_events: OutletEvents) -> None:
            outlet_events[asset_9].extra = {"row_count": 4}

        assert await self.extras(write_to_s3) == [{"row_count": 4}]

    async def test_after_a_retry(self) -> None:
        @task(outlets=[asset_9], retries=1)
        def write_to_s3() -> Generator[Metadata]:
            recording = current_recording()
            assert recording is not None
            yield Metadata(asset_9, {f"from_attempt_{recording.attempt}": True})
            if recording.attempt == 1:
                raise ValueError("once more")

        assert await self.extras(write_to_s3) == [{"from_attempt_2": True}]

    async def extras(self, write_to_s3: object) -> list[object]:
        @flow
        async def producer() -> None:
            write_to_s3()  # pyright: ignore[reportCallIssue]

        with new_events(asset_9) as events:
            await producer()
        return [event.extra for event in events]


asset_10 = Asset(f"s3://example-10/{RUN}")


@task(outlets=[asset_10])
def write_to_s3(count: int) -> Generator[Metadata]:
    yield Metadata(asset_10, {"row_count": count})


@task(inlets=[asset_10])
def post_process_s3_file(inlet_events: InletEvents) -> tuple[object, list[AssetEvent]]:
    past = inlet_events[asset_10]
    with pytest.raises(KeyError):
        inlet_events[Asset("s3://example-10/undeclared")]
    return past[-1].extra["row_count"], past[-2:]


class TestExample10:
    """`post_process_s3_file` next in the same flow sees the update; only what is asked for is read."""

    async def test(self, prefect_here: PrefectServer) -> None:
        @flow
        async def producer() -> tuple[object, list[AssetEvent]]:
            write_to_s3(5)
            write_to_s3(6)
            return post_process_s3_file()  # pyright: ignore[reportCallIssue]

        last, two = await producer()
        assert last == 6
        assert [event.extra["row_count"] for event in two] == [5, 6]

        @flow
        async def reader() -> None:
            post_process_s3_file()  # pyright: ignore[reportCallIssue]

        with respx.mock(assert_all_called=False) as router:
            pages = router.post(f"{prefect_here.api_url}/artifacts/filter").pass_through()
            router.route().pass_through()
            await reader()
        offsets = {json.loads(call.request.content)["offset"] for call in pages.calls}
        assert offsets == {0}, "the newest page holds the last two events"


outputs = AssetAlias(f"my-task-outputs-{RUN}")
my_task = Asset(f"s3://bucket/my-task-{RUN}")


@task(outlets=[outputs])
def my_task_with_outlet_events(outlet_events: OutletEvents) -> None:
    outlet_events[outputs].add(my_task, extra={"k": "v"})


@task(outlets=[outputs])
def my_task_with_metadata() -> Generator[Metadata]:
    yield Metadata(my_task, extra={"k": "v"}, alias=outputs.name)


@task(outlets=[outputs])
def my_task_that_adds_nothing() -> None: ...


class TestExample13:
    """Both forms make one event each through the alias; nothing added makes none."""

    async def test(self) -> None:
        @flow
        async def producer() -> None:
            my_task_with_outlet_events()  # pyright: ignore[reportCallIssue]
            my_task_with_metadata()
            my_task_that_adds_nothing()

        with new_events(my_task) as events:
            await producer()
        assert [(event.extra, event.aliases) for event in events] == [({"k": "v"}, (outputs.name,))] * 2


class TestExample16:
    """`consume_asset_alias_events` has no schedule and reads what came through the alias."""

    async def test(self) -> None:
        alias = AssetAlias(f"example-16-{RUN}")

        @task(outlets=[alias])
        def produce_asset_events_through_asset_alias() -> Generator[Metadata]:
            yield Metadata(Asset(f"s3://example-16/{RUN}"), {"row_count": 1}, alias=alias)

        @task(inlets=[alias])
        def consume_asset_alias_events(inlet_events: InletEvents) -> object:
            return inlet_events[alias][-1].extra["row_count"]

        @flow
        async def both() -> object:
            produce_asset_events_through_asset_alias()
            return consume_asset_alias_events()  # pyright: ignore[reportCallIssue]

        assert await both() == 1
