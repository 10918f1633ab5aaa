"""Partition keys from an update to a run, on a real Prefect server: whatever text a key is, it arrives as data."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from prefect import get_client
from prefect.flow_engine import run_flow

from assetflow import Asset, PartitionedAssetTimetable, TriggeringAssetEvents, flow, partition_key, task
from assetflow.authoring.flows import AssetFlow
from assetflow.partitions import DayWindow, RollupMapper, StartOfDayMapper
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation, events_of, recording
from tests.integration.recorded import new_events

pytestmark = [pytest.mark.long, pytest.mark.prefect]

KEYS = (
    "2026-11-20",
    "{{ flow_run.name }}",
    '{"__prefect_kind": "jinja", "template": "{{ 1 / 0 }}"}',
    "us|<b>Zürich</b> & co / 100 %",
    "k" * 250,
)


@pytest.fixture(scope="module")
def at_work(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    installation = Installation(prefect_server, tmp_path_factory.mktemp("partitions"))
    installation.start()
    yield installation
    installation.close()


@pytest.fixture
def here(at_work: Installation, prefect_here: PrefectServer) -> Iterator[Installation]:  # noqa: ARG001
    at_work.rename()
    yield at_work
    at_work.remove_deployments()


def keyed_flow(here: Installation, result: Asset, schedule: PartitionedAssetTimetable) -> AssetFlow[..., Any]:
    @task(outlets=[result])
    def write() -> None: ...

    @flow(schedule=schedule, name=f"consumer-{here.mark}", persist_result=False)
    def consumer(triggering_asset_events: TriggeringAssetEvents) -> list[object]:
        write()
        return [partition_key(), [event.partition_key for event in triggering_asset_events.all()]]

    return consumer


def deploy(here: Installation, consumer: AssetFlow[..., Any]) -> str:
    deployed: Any = consumer.to_deployment("keyed")
    number = str(deployed.apply())
    here.deployments[number] = f"{consumer.name}/keyed"
    here.wait_for_consumers()
    return number


async def outcome_of(consumer: AssetFlow[..., Any], run: str) -> Any:
    async with get_client() as client:
        stored = await client.read_flow_run(UUID(run))
    return await asyncio.to_thread(run_flow, consumer, flow_run=stored, parameters=stored.parameters)


async def test_keys_of_posted_events_arrive_as_data(here: Installation) -> None:
    source, result = Asset(here.uri("hourly")), Asset(here.uri("result"))
    consumer = keyed_flow(here, result, PartitionedAssetTimetable(assets=source))
    deployment = await asyncio.to_thread(deploy, here, consumer)
    for key in KEYS:
        here.update(source.uri, partition_key=key)
    here.until(lambda: len(here.runs(deployment)) == len(KEYS))

    runs = {run["labels"]["assetflow.partition-key"]: run for run in here.runs(deployment)}

    assert set(runs) == set(KEYS)
    for key, run in runs.items():
        assert run["parameters"] == {"partition_key": key}
        assert run["context"]["assetflow"]["partition_key"] == key
        assert run["name"].startswith(key)
        with new_events(result) as events:
            assert await outcome_of(consumer, run["id"]) == [key, [key]]
        assert [event.partition_key for event in events] == [key], "the run's own key is that of its updates"


@pytest.mark.parametrize("key", KEYS)
async def test_a_person_may_run_a_key(here: Installation, key: str) -> None:
    result = Asset(here.uri("result"))
    consumer = keyed_flow(here, result, PartitionedAssetTimetable(assets=Asset(here.uri("hourly"))))
    deployment = await asyncio.to_thread(deploy, here, consumer)
    run = here.post(f"/deployments/{deployment}/create_flow_run", {"parameters": {"partition_key": key}})
    with new_events(result) as events:
        assert await outcome_of(consumer, run["id"]) == [key, []]
    assert [event.partition_key for event in events] == [key]


def test_the_command_line_and_tasks_give_keys_and_a_day_waits_for_its_hours(here: Installation) -> None:
    source = Asset(here.uri("hourly"))
    mapper = RollupMapper(upstream_mapper=StartOfDayMapper(input_format="%Y-%m-%dT%H"), window=DayWindow())
    schedule = PartitionedAssetTimetable(assets=source, default_partition_mapper=mapper)
    deployment = deploy(here, keyed_flow(here, Asset(here.uri("result")), schedule))

    hours = [f"2026-11-20T{hour:02}" for hour in range(24)]
    here.task_recorded(recording(source.uri, keys=hours[:23]))
    here.update(source.uri, partition_key="no hour")
    with here.reader() as ledger:
        here.until(lambda: ledger.events.count() and _not_mapped(here, source.uri))
    assert here.runs(deployment) == []
    emit = [sys.executable, "-m", "assetflow", "emit", source.uri, "--key", hours[23]]
    env = os.environ | here.server.env | {"ASSETFLOW_HOME": str(here.home)}
    subprocess.run(emit, env=env, check=True, capture_output=True)

    run = here.run_of(deployment)
    assert run["parameters"] == {"partition_key": "2026-11-20"}
    assert [event["partition_key"] for event in events_of(run)] == hours
    assert "'%Y-%m-%dT%H'" in _not_mapped(here, source.uri)[0]


def test_a_killed_backfill_goes_on_and_runs_no_key_twice(here: Installation) -> None:
    consumer = keyed_flow(here, Asset(here.uri("result")), PartitionedAssetTimetable(assets=Asset(here.uri("daily"))))
    deployment = deploy(here, consumer)
    keys = ["2026-11-20", "2026-11-21", KEYS[2]]
    command = [sys.executable, "-m", "assetflow", "backfill", f"{consumer.name}/keyed", "--concurrency", "1"]
    command += ["--keys", *keys]
    env = os.environ | here.server.env | {"ASSETFLOW_HOME": str(here.home)}

    first = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    here.until(lambda: here.runs(deployment))
    first.kill()
    first.wait()
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as second:
        try:
            for number in range(1, len(keys) + 1):
                here.until(lambda number=number: len(here.runs(deployment)) == number)
                (run,) = [run for run in here.runs(deployment) if run["state_type"] != "COMPLETED"]
                here.post(f"/flow_runs/{run['id']}/set_state", {"state": {"type": "COMPLETED"}, "force": True})
            assert second.wait(60) == 0
        finally:
            second.kill()
    runs = here.runs(deployment)
    assert sorted(run["parameters"]["partition_key"] for run in runs) == sorted(keys)
    assert all(run["context"]["assetflow"]["events"] == [] for run in runs)


def _not_mapped(here: Installation, uri: str) -> list[str]:
    with here.reader() as ledger:
        events = [event for event in ledger.events.find() if event.uri == uri and event.partition_key == "no hour"]
        receipts = [each.receipt for event in events for each in ledger.receipts.of_event(event.id)]
    return [receipt.error for receipt in receipts if receipt.status == "not_mapped"]
