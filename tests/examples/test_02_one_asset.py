"""Example 2: a schedule of one asset, in a list; a name does not make it another asset."""

from __future__ import annotations

import pytest

from assetflow import Asset, flow, task
from assetflow.testing import Harness

URI = "s3://asset-bucket/example.csv"


@task(outlets=[Asset(URI)])
def write_example() -> None: ...


@task(outlets=[Asset(URI, name="bucket-1")])
def write_named_example() -> None: ...


@flow
async def producer() -> None:
    write_example()


@flow
async def named_producer() -> None:
    write_named_example()


@flow(schedule=[Asset(URI)])
async def consumer() -> None: ...


@flow(schedule=[Asset(URI, name="bucket-1")])
async def consumer_of_the_name() -> None: ...


@pytest.mark.prefect
def test_live(h: Harness) -> None:
    h.deploy(consumer)
    h.deploy(consumer_of_the_name)
    h.run(producer)
    h.settle(execute=False)
    assert [run.uris for run in h.runs(consumer)] == [[URI]]
    assert [run.uris for run in h.runs(consumer_of_the_name)] == [[URI]]
    h.run(named_producer)
    h.settle(execute=False)
    assert len(h.runs(consumer)) == 2
    assert len(h.runs(consumer_of_the_name)) == 2
