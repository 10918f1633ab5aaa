"""Example 12: what waits in a queue, and what happens when somebody takes it out."""

from __future__ import annotations

import pytest

from assetflow import Asset, flow
from assetflow.cli.queue import rm
from assetflow.testing import Harness

FIRST, SECOND = Asset("asset-1"), Asset("asset-2")


@flow(schedule=[FIRST, SECOND])
async def waiting_for_asset_1_and_2() -> None: ...


@pytest.mark.prefect
def test_live(h: Harness) -> None:
    h.deploy(waiting_for_asset_1_and_2)
    h.emit(FIRST)
    assert [event.uri for event in h.queued(waiting_for_asset_1_and_2)] == ["asset-1"]
    h.emit(SECOND)
    (run,) = h.settle().runs(waiting_for_asset_1_and_2)
    assert (run.uris, run.state) == (["asset-1", "asset-2"], "Completed")
    assert h.queued(waiting_for_asset_1_and_2) == []


@pytest.mark.rule("3.7")
@pytest.mark.prefect
def test_live_and_deleted_in_between(h: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    name = h.deploy(waiting_for_asset_1_and_2)
    h.emit(FIRST)
    rm(name, why="it was a test", asset="asset-1")
    h.emit(SECOND)
    assert h.settle().runs(waiting_for_asset_1_and_2) == []
    assert [event.uri for event in h.queued(waiting_for_asset_1_and_2)] == ["asset-2"]
    assert "1 event removed" in capsys.readouterr().out
