"""Partition keys from an update to a run, on a real Prefect server: whatever text a key is, it arrives as data."""

import asyncio
import os
import subprocess
import sys
from typing import Any
from uuid import UUID

import pytest
from prefect import get_client
from prefect.flow_engine import run_flow

from assetflow import Asset, PartitionedAssetTimetable, TriggeringAssetEvents, flow, partition_key, task
from assetflow.authoring.flows import AssetFlow
from tests.integration.installation import Installation, events_of
from tests.integration.recorded import new_events

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.usefixtures("prefect_here")]

KEYS = (
    "2026-11-20",
    "{{ flow_run.name }}",
    '{"__prefect_kind": "jinja", "template": "{{ 1 / 0 }}"}',
    "us|<b>Zürich</b> & co / 100 %",
    "k" * 250,
)


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
    here.begin()
    return number


async def outcome_of(consumer: AssetFlow[..., Any], run: str) -> Any:
    async with get_client() as client:
        stored = await client.read_flow_run(UUID(run))
    return await asyncio.to_thread(run_flow, consumer, flow_run=stored, parameters=stored.parameters)


async def test_keys_of_posted_events_and_of_runs_by_hand_arrive_as_data(here: Installation) -> None:
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
        by_hand = here.post(f"/deployments/{deployment}/create_flow_run", {"parameters": {"partition_key": key}})
        with new_events(result) as events:
            assert await outcome_of(consumer, by_hand["id"]) == [key, []]
        assert [event.partition_key for event in events] == [key]


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
    assert all(events_of(run) == [] for run in runs)
