"""Pruned updates do not come back, neither by a sweep of Prefect's log nor by a replay."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.errors import InvalidCall
from assetflow.evaluator.health import Health
from assetflow.evaluator.incoming.catch_up import CatchUp
from assetflow.evaluator.incoming.inbox import Inbox
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.process import binding, evaluator
from assetflow.ledger import Ledger
from assetflow.ledger.read.pruning import Pruned
from tests.environment.tasks import cancel
from tests.evaluator.fakes import FakeLogs, no_starts

NOW = datetime.now(UTC)
START = NOW - timedelta(days=60)


def posted(uri: str, ago: timedelta) -> tuple[Recording, dict[str, Any]]:
    """An update from outside assetflow: the recording in the ledger, and the event in Prefect's log."""
    occurred = NOW - ago
    event = AssetEvent(uuid4(), Asset(uri), occurred, Origin("prefect"))
    name = {"event": "assetflow.asset.updated", "resource": {"prefect.resource.id": uri}, "payload": {}}
    return Recording(event.id, (event,)), {"id": str(event.id), "occurred": occurred.isoformat(), **name}


def ledger_with(place: Path, ages: list[float], looked: timedelta) -> tuple[Ledger, FakeLogs]:
    """A ledger with an update of each age in days, recorded when it occurred; the last sweep was so long ago."""
    ledger, logs = Ledger.open(place, now=START), FakeLogs()
    for days in sorted(ages, reverse=True):
        recording, event = posted("s3://lake/a", timedelta(days=days))
        ledger.writer.events.record([recording], NOW - timedelta(days=days))
        logs.events.append(event)
    # So that none of them stays for being the newest.
    ledger.writer.events.record([posted("s3://lake/a", timedelta(0))[0]], NOW)
    ledger.writer.set_cursor("events", (NOW - looked).isoformat())
    return ledger, logs


@pytest.mark.parametrize(("looked", "gone"), [(timedelta(0), 4), (timedelta(days=10), 2), (timedelta(days=30), 1)])
async def test_the_sweep_after_a_prune_brings_no_removed_update(tmp_path: Path, looked: timedelta, gone: int) -> None:
    ages = [0.5, 6.9, 7.5, 8.5, 12, 19, 39]
    ledger, logs = ledger_with(tmp_path / "ledger.db", ages, looked)
    with ledger:
        before = binding._limit(ledger.reader, NOW - binding.SHORTEST)
        assert binding._prune_ledger(ledger, before).events == gone
        left = ledger.reader.events.count()
    async with LedgerThread(tmp_path / "ledger.db") as thread:
        health = Health()
        inbox = Inbox(thread, health, lambda: NOW, lambda: None, lambda: None, no_starts)
        writing = asyncio.create_task(inbox.run())
        catch_up = CatchUp(logs, logs, inbox, thread, health, lambda: NOW, START)
        await catch_up.start()
        await catch_up.full_sweep()
        await cancel(writing)
        assert thread.ledger.reader.events.count() == left


def test_a_ledger_whose_evaluator_has_not_swept_yet_is_not_pruned(tmp_path: Path) -> None:
    ledger, _ = ledger_with(tmp_path / "ledger.db", [50], timedelta(0))
    with ledger:
        ledger.writer.set_cursor("events", None)
        assert binding._prune_ledger(ledger, binding._limit(ledger.reader, NOW)) == Pruned()


async def test_a_replay_from_before_a_prune_is_refused(tmp_path: Path) -> None:
    ledger, _ = ledger_with(tmp_path / "ledger.db", [50, 20], timedelta(0))
    with ledger:
        binding._prune_ledger(ledger, NOW - timedelta(days=30))
        binding._prune_ledger(ledger, NOW - timedelta(days=40))
    async with LedgerThread(tmp_path / "ledger.db") as thread:
        with pytest.raises(InvalidCall, match="would count again"):
            await evaluator._floor(thread, NOW - timedelta(days=31), cast(Any, None))
        assert await thread.cursor("artifacts") is None
