"""What runs inside a flow: the events that started it, its key, and past events (chapter 7)."""

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import prefect
import pytest
from prefect import Flow, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.flow_engine import run_flow

from assetflow import (
    Asset,
    AssetAlias,
    InletEvents,
    Metadata,
    PartitionedAssetTimetable,
    TriggeringAssetEvents,
    emit,
    flow,
    inlet_events,
    partition_key,
    task,
    triggering_asset_events,
)
from assetflow.core.rules import fold
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.core.wire.events import event_to_json
from assetflow.core.wire.run_context import RunContext, run_context_to_json
from assetflow.ledger import Ledger
from assetflow.prefect_io.rest import TaskApi
from tests.authoring.events import event
from tests.environment.prefect_server import PrefectServer
from tests.integration.recorded import fresh, new_events
from tests.integration.remote_flow import A as REMOTE

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.usefixtures("prefect_here")]

A, B = fresh("a"), fresh("b")
EVENTS = (event(1, A), event(2, B, "x"), event(3, A))


async def run_triggered(
    made: Flow[..., Any], context: RunContext | None = None, parameters: dict[str, Any] | None = None
) -> Any:
    """The result of a flow run that the evaluator could have created."""
    async with get_client() as client:
        flow_id = await client.create_flow(made)
    body = {
        "flow_id": str(flow_id),
        "parameters": parameters or {},
        "context": {} if context is None else run_context_to_json(context),
        "state": {"type": "PENDING"},
    }
    with TaskApi.connect() as api:
        stored = cast("dict[str, Any]", api.post("/flow_runs/", body))
    return await asyncio.to_thread(_ended, made, FlowRun.model_validate(stored))


def _ended(made: Flow[..., Any], run: FlowRun) -> Any:
    result = run_flow(made, flow_run=run)
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


def seen() -> list[object]:
    found = triggering_asset_events()
    return [len(found[A]), len(found[AssetAlias("x")]), partition_key()]


@task
def ask(_: int = 0) -> list[object]:
    return seen()


@prefect.task
def plain_ask() -> list[object]:
    return seen()


@task(outlets=[B])
def keyed() -> None: ...


@prefect.flow
def below() -> list[object]:
    return [seen(), ask(), plain_ask.submit().result()]


@flow(schedule=PartitionedAssetTimetable(assets=A & B))
async def consumer(triggering_asset_events: TriggeringAssetEvents) -> list[object]:
    keyed()
    mapped = ask.map([1, 2]).result()
    return [seen(), *below(), *mapped, [len(triggering_asset_events[A]), len(triggering_asset_events.all())]]


@pytest.mark.rule("7.1")
async def test_events_and_key_of_the_run_are_seen_everywhere_in_it() -> None:
    with new_events(B) as events:
        found = await run_triggered(consumer, RunContext(uuid4(), "consumer/x", "2026-01-01", EVENTS))
    assert found == [[2, 1, "2026-01-01"]] * 6 + [[2, 3]]
    assert events[0].partition_key == "2026-01-01", "a task's update has the key of its run (2.5)"


@pytest.mark.rule("7.1")
async def test_events_in_an_artifact_are_fetched() -> None:
    data = json.dumps([event_to_json(each) for each in EVENTS])
    with TaskApi.connect() as api:
        body = {"type": "assetflow-triggering-events", "data": data}
        artifact = cast("dict[str, Any]", api.post("/artifacts/", body))
    context = RunContext(uuid4(), "consumer/x", events=None, artifact=UUID(artifact["id"]))
    assert (await run_triggered(consumer, context))[-1] == [2, 3]


@pytest.mark.rule("7.3")
@pytest.mark.long
def test_events_reach_other_processes_and_their_updates_are_recorded(prefect_here: PrefectServer) -> None:
    command = [sys.executable, "-m", "tests.integration.remote_flow"]
    with new_events(REMOTE) as events:
        done = subprocess.run(
            command, cwd=Path(__file__).parents[2], env=prefect_here.env, capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [2, "k"]
    assert [each.partition_key for each in events] == ["k"]


# Past events


@task(outlets=[A])
def write(count: int) -> Any:
    yield Metadata(A, {"row_count": count})


@task(outlets=[AssetAlias("past")])
def write_through_alias(count: int) -> Any:
    yield Metadata(B, {"row_count": count}, alias="past")


def counts(events: Any) -> list[object]:
    return [each.extra.get("row_count") for each in events]


@task(inlets=[A, AssetAlias("past"), Asset.ref(name=A.name)])
def read_back(inlet_events: InletEvents) -> dict[str, Any]:
    past = inlet_events[A]
    with pytest.raises(KeyError):
        inlet_events[B]
    return {
        "last": past[-1].extra,
        "two": counts(past[-2:]),
        "all": counts(past),
        "alias": counts(inlet_events[AssetAlias("past")]),
        "name": counts(inlet_events[Asset.ref(name=A.name)][-1:]),
        "newest first": counts(past.ascending(False).limit(2)),
        "later": counts(past.after(past[-2].timestamp)),
        "flow": past[-1].source_flow_run and past[-1].source_flow_run.flow_name,
    }


@flow(name="writes-and-reads", reads=[B])
async def writes_and_reads() -> dict[str, Any]:
    for count in (1, 2, 3):
        write(count)
    write_through_alias(7)
    assert counts(inlet_events()[B])[-1] == 7
    return read_back()  # pyright: ignore[reportCallIssue]


@pytest.mark.rule("7.2")
async def test_a_task_sees_the_updates_of_its_own_run_without_any_evaluator() -> None:
    found = await writes_and_reads()
    assert found["all"][-3:] == [1, 2, 3]
    assert (found["last"], found["two"], found["newest first"]) == ({"row_count": 3}, [2, 3], [3, 2])
    assert (found["later"], found["name"], found["alias"][-1]) == ([3], [3], 7)
    assert found["flow"] == "writes-and-reads"


@pytest.fixture
def ledger(prefect_here: PrefectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A ledger at hand that belongs to the server."""
    monkeypatch.setenv("ASSETFLOW_HOME", str(tmp_path))
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.writer.set_prefect_api_url(prefect_here.api_url)
        yield ledger


@pytest.mark.rule("7.2")
async def test_with_a_ledger_at_hand_recorded_events_come_from_it_and_the_others_last(ledger: Any) -> None:
    asset = fresh("in-ledger")
    old = [
        AssetEvent(uuid4(), asset, datetime(2026, 1, 1, hour, tzinfo=UTC), event(1).origin, {"row_count": hour})
        for hour in (1, 2)
    ]
    record(ledger, old)
    emitted = emit(asset, {"row_count": 3})

    @flow(reads=[asset])
    async def reading() -> list[object]:
        past = inlet_events()[asset]
        first, last = past[0], past[-1]
        return [counts(past), counts([first, last]), counts(past[1:3]), len(past), [each.sequence for each in past]]

    everything = [[1, 2, 3], [1, 3], [2, 3], 3]
    assert await reading() == [*everything, [old_sequence(ledger, each) for each in old] + [None]]
    record(ledger, [emitted])
    assert (await reading())[:4] == everything

    @task(inlets=[asset], outlets=[A])
    def derive() -> None: ...

    @flow
    async def deriving() -> None:
        derive()

    with new_events(A) as events:
        await deriving()
    assert events[0].inputs == {asset.uri: old_sequence(ledger, emitted)}


def record(ledger: Any, events: list[AssetEvent]) -> None:
    now = datetime.now(UTC)
    with ledger.transaction(now) as unit:
        fold.record(unit.state, Recording(uuid4(), tuple(events)), now)


def old_sequence(ledger: Any, wanted: AssetEvent) -> int:
    return ledger.reader.events.get(wanted.id).sequence
