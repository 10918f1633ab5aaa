"""A flow whose tasks run in other processes; run as a module it prints what they see."""

import asyncio
import json
import sys

from prefect.task_runners import ProcessPoolTaskRunner

from assetflow import Asset, PartitionedAssetTimetable, flow, partition_key, task, triggering_asset_events
from tests.authoring.events import event

A = Asset("s3://tests/remote")


@task(outlets=[A])
def ask() -> list[object]:
    return [len(triggering_asset_events()[A]), partition_key()]


@flow(schedule=PartitionedAssetTimetable(assets=A), task_runner=ProcessPoolTaskRunner(max_workers=1))
async def remote() -> list[object]:
    return ask.submit().result()


if __name__ == "__main__":
    events = [event(1, A), event(2, A)]
    found = asyncio.run(remote(triggering_asset_events=events, partition_key="k"))  # pyright: ignore[reportCallIssue]
    sys.stdout.write(f"{json.dumps(found)}\n")
