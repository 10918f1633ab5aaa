"""Example 15: an alias and an asset of the same name are two things; consumers of both run at the first update."""

from __future__ import annotations

import pytest

from assetflow import Asset, AssetAlias, OutletEvents, flow, task
from assetflow.testing import Harness

NAME = "example-alias"
ALIAS = AssetAlias(NAME)
ASSET = Asset("s3://bucket/my-task")


@task(outlets=[Asset(NAME)])
def produce_asset_events() -> None: ...


@task(outlets=[ALIAS])
def produce_asset_events_through_asset_alias(outlet_events: OutletEvents) -> None:
    outlet_events[ALIAS].add(ASSET)


@flow(name="asset-producer")
async def asset_producer() -> None:
    produce_asset_events()


@flow(name="asset-alias-producer")
async def asset_alias_producer() -> None:
    produce_asset_events_through_asset_alias()  # pyright: ignore[reportCallIssue]


@flow(name="asset-consumer", schedule=ASSET)
async def asset_consumer() -> None: ...


@flow(name="asset-alias-consumer", schedule=ALIAS)
async def asset_alias_consumer() -> None: ...


@pytest.mark.rule("1.7")
@pytest.mark.prefect
def test_live(h: Harness) -> None:
    for each in (asset_producer, asset_alias_producer, asset_consumer, asset_alias_consumer):
        h.deploy(each)
    h.run(asset_producer)
    h.settle()
    assert h.runs(asset_consumer) == []
    assert h.runs(asset_alias_consumer) == []
    h.run(asset_alias_producer)
    h.settle()
    for consumer in (asset_consumer, asset_alias_consumer):
        (run,) = h.runs(consumer)
        assert (run.uris, run.state) == ([ASSET.uri], "Completed")
