"""Example 17: an alias brings assets that are named at run time, and their own later updates count for it too."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from assetflow import Asset, AssetAlias, Metadata, flow, task
from assetflow.testing import Harness

UPDATED = AssetAlias("my-updated-buckets")


def bucket(bucket_name: str) -> Asset:
    return Asset(f"updated_{bucket_name}")


@task(outlets=[UPDATED])
def write_to_a_bucket(bucket_name: str) -> Generator[Metadata]:
    yield Metadata(bucket(bucket_name), alias=UPDATED)


@flow
async def writes_to_a_bucket(bucket_name: str) -> None:
    write_to_a_bucket(bucket_name)


@flow
async def updates_directly(bucket_name: str) -> None:
    task(outlets=[bucket(bucket_name)])(lambda: None)()


@flow(schedule=UPDATED)
async def consumer() -> None: ...


@pytest.mark.rule("3.2")
@pytest.mark.prefect
def test_live(h: Harness) -> None:
    h.deploy(consumer)
    seen: list[list[str]] = []
    for producer, bucket_name in (
        (writes_to_a_bucket, "a"),
        (updates_directly, "a"),
        (writes_to_a_bucket, "b"),
        (updates_directly, "b"),
    ):
        h.run(producer, bucket_name=bucket_name)
        runs = h.settle(execute=False).runs(consumer)[len(seen) :]
        assert len(runs) == 1
        seen += [run.uris for run in runs]
    assert seen == [["updated_a"], ["updated_a"], ["updated_b"], ["updated_b"]]
