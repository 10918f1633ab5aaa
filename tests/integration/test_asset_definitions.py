"""Flows made by `@asset` on a real Prefect server: they run, record, and start each other."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from assetflow import Asset, Metadata, asset
from assetflow.testing import Harness

pytestmark = [pytest.mark.long, pytest.mark.prefect]

LEFT, RIGHT = Asset("s3://definitions/left"), Asset("s3://definitions/right")
seen: list[Any] = []


@asset(uri="s3://definitions/raw")
def raw(rows: int = 3) -> Iterator[Metadata]:
    yield Metadata(raw.asset, {"rows": rows})


@asset(uri="s3://definitions/clean", schedule=raw)
async def clean(raw: Asset, triggering_asset_events: Any, outlet_events: Any, factor: int = 2) -> None:
    (event,) = triggering_asset_events[raw]
    outlet_events[clean.asset].extra = {"rows": event.extra["rows"] * factor}
    seen.append(raw)


@asset.multi(outlets=[LEFT, RIGHT], schedule=clean)
async def split() -> AsyncIterator[Metadata]:
    yield Metadata(LEFT, {"side": "left"})


@asset(uri="s3://definitions/all", schedule=[split])
async def together(triggering_asset_events: Any) -> None:
    seen.append([event.extra for event in triggering_asset_events.all()])


def test_definitions_start_each_other(h: Harness) -> None:
    seen.clear()
    for each in (clean, split, together):
        h.deploy(each)
    h.run(raw, rows=4)
    h.settle()
    assert [run.uris for run in h.runs(clean)] == [[raw.asset.uri]]
    assert [run.events[0].extra for run in h.runs(split)] == [{"rows": 8}]
    assert [run.uris for run in h.runs(together)] == [[LEFT.uri, RIGHT.uri]]
    assert {run.state for each in (clean, split, together) for run in h.runs(each)} == {"Completed"}
    assert seen == [raw.asset, [{"side": "left"}, {}]]
