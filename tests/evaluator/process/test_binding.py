"""A ledger that another one takes over hands over what only it has; pruned updates do not come back."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
import respx

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, OriginKind, Recording
from assetflow.errors import InvalidCall, LedgerForeign
from assetflow.evaluator.health import Health
from assetflow.evaluator.incoming.catch_up import CatchUp
from assetflow.evaluator.incoming.inbox import Inbox
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.process import binding, evaluator
from assetflow.evaluator.process.binding import Binding
from assetflow.ledger import Ledger
from assetflow.prefect_io.recordings import recording_from_artifact
from assetflow.prefect_io.rest import BY_NAME, TAKEN_OVER, prefect_api
from tests.environment.prefect_settings import prefect_at
from tests.environment.tasks import cancel
from tests.evaluator.fakes import FakeLogs, no_starts
from tests.ledger.making import NOW, event

URL = "http://prefect.test/api"
OTHER = str(UUID(int=9))


@dataclass
class Bound:
    """A ledger, its bond, and what Prefect says and gets."""

    thread: LedgerThread
    binding: Binding
    artifacts: respx.Route

    def belongs_to(self, ledger: str) -> None:
        respx.get(f"{URL}{BY_NAME}").respond(json={"value": ledger})

    def record(self, number: int, kind: OriginKind = "api") -> None:
        told = event(id=UUID(int=number), origin=Origin(kind))
        self.thread.ledger.writer.events.record([Recording(told.id, (told,))], NOW)

    def sent(self) -> list[UUID]:
        told = [recording_from_artifact(json.loads(each.request.content)) for each in self.artifacts.calls]
        return [event.id for each in told for event in each.events]


@pytest.fixture
async def bound(tmp_path: Path) -> AsyncIterator[Bound]:
    with prefect_at(URL), respx.mock:
        artifacts = respx.post(f"{URL}/artifacts/").respond(201, json={"id": str(UUID(int=1))})
        async with LedgerThread(tmp_path / "ledger.db") as thread, prefect_api() as api:
            bound = Bound(thread, Binding(api, thread), artifacts)
            bound.belongs_to(str(thread.ledger.id))
            await bound.binding.bind(take_over=False)
            yield bound


async def test_what_came_since_the_last_look_reaches_the_other_ledger(bound: Bound) -> None:
    bound.record(1)
    await bound.binding.check()
    bound.record(2)
    bound.record(3, "task")
    bound.record(4, "cli")
    bound.record(5, "watcher")
    bound.belongs_to(OTHER)
    with pytest.raises(LedgerForeign):
        await bound.binding.check()
    # Prefect has what a task recorded.
    assert bound.sent() == [UUID(int=number) for number in (2, 4, 5)]
    assert bound.thread.ledger.reader.cursor(TAKEN_OVER) == OTHER


TODAY = datetime.now(UTC)
BEGAN = TODAY - timedelta(days=60)


def posted(uri: str, ago: timedelta) -> tuple[Recording, dict[str, Any]]:
    """An update from outside assetflow: the recording in the ledger, and the event in Prefect's log."""
    occurred = TODAY - ago
    event = AssetEvent(uuid4(), Asset(uri), occurred, Origin("prefect"))
    name = {"event": "assetflow.asset.updated", "resource": {"prefect.resource.id": uri}, "payload": {}}
    return Recording(event.id, (event,)), {"id": str(event.id), "occurred": occurred.isoformat(), **name}


def ledger_with(place: Path, ages: list[float], looked: timedelta) -> tuple[Ledger, FakeLogs]:
    """A ledger with an update of each age in days, recorded when it occurred; the last sweep was so long ago."""
    ledger, logs = Ledger.open(place, now=BEGAN), FakeLogs()
    for days in sorted(ages, reverse=True):
        recording, event = posted("s3://lake/a", timedelta(days=days))
        ledger.writer.events.record([recording], TODAY - timedelta(days=days))
        logs.events.append(event)
    # So that none of them stays for being the newest.
    ledger.writer.events.record([posted("s3://lake/a", timedelta(0))[0]], TODAY)
    ledger.writer.set_cursor("events", (TODAY - looked).isoformat())
    return ledger, logs


@pytest.mark.parametrize(("looked", "gone"), [(timedelta(0), 4), (timedelta(days=10), 2), (timedelta(days=30), 1)])
async def test_the_sweep_after_a_prune_brings_no_removed_update(tmp_path: Path, looked: timedelta, gone: int) -> None:
    ages = [0.5, 6.9, 7.5, 8.5, 12, 19, 39]
    ledger, logs = ledger_with(tmp_path / "ledger.db", ages, looked)
    with ledger:
        before = binding._limit(ledger.reader, TODAY - binding.SHORTEST)
        assert binding._prune_ledger(ledger, before).events == gone
        left = ledger.reader.events.count()
    async with LedgerThread(tmp_path / "ledger.db") as thread:
        health = Health()
        inbox = Inbox(thread, health, lambda: TODAY, lambda: None, lambda: None, no_starts)
        writing = asyncio.create_task(inbox.run())
        catch_up = CatchUp(logs, logs, inbox, thread, health, lambda: TODAY, BEGAN)
        await catch_up.start()
        await catch_up.full_sweep()
        await cancel(writing)
        assert thread.ledger.reader.events.count() == left


async def test_a_replay_from_before_a_prune_is_refused(tmp_path: Path) -> None:
    ledger, _ = ledger_with(tmp_path / "ledger.db", [50, 20], timedelta(0))
    with ledger:
        binding._prune_ledger(ledger, TODAY - timedelta(days=30))
        binding._prune_ledger(ledger, TODAY - timedelta(days=40))
    async with LedgerThread(tmp_path / "ledger.db") as thread:
        with pytest.raises(InvalidCall, match="would count again"):
            await evaluator._floor(thread, TODAY - timedelta(days=31), cast(Any, None))
        assert await thread.cursor("artifacts") is None
