"""Example 16: a flow without a schedule reads what came through an alias."""

from collections.abc import Generator

import pytest

from assetflow import Asset, AssetAlias, InletEvents, Metadata, flow, task
from assetflow.testing import Harness

ALIAS = AssetAlias("example-alias")


@task(outlets=[ALIAS])
def produce_asset_events_through_asset_alias() -> Generator[Metadata]:
    yield Metadata(Asset("s3://bucket/my-task"), {"row_count": 1}, alias=ALIAS)


@task(inlets=[ALIAS])
def read_what_came(inlet_events: InletEvents) -> object:
    return inlet_events[ALIAS][-1].extra["row_count"]


@flow
async def producer() -> None:
    produce_asset_events_through_asset_alias()


@flow
async def consume_asset_alias_events() -> object:
    return read_what_came()  # pyright: ignore[reportCallIssue]


@pytest.mark.rule("7.2")
@pytest.mark.prefect
def test_live(h: Harness) -> None:
    h.run(producer)
    h.settle()
    assert h.run(consume_asset_alias_events) == 1
