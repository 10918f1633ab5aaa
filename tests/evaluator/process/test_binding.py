"""An evaluator whose Prefect another ledger takes over hands over what only its own ledger has."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import httpx
import pytest
import respx

from assetflow.core.values.events import Origin, OriginKind, Recording
from assetflow.errors import LedgerForeign
from assetflow.evaluator.ledger_thread import LedgerThread
from assetflow.evaluator.process.binding import Binding
from assetflow.ledger.read.events import only_here
from assetflow.prefect_io.recordings import recording_from_artifact
from assetflow.prefect_io.rest import BY_NAME, TAKEN_OVER, prefect_api
from tests.environment.prefect_settings import prefect_at
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


async def test_a_prefect_whose_variable_was_deleted_is_bound_again(bound: Bound) -> None:
    respx.get(f"{URL}{BY_NAME}").respond(404, json={"detail": "Variable not found"})

    def bind(request: httpx.Request) -> httpx.Response:
        bound.belongs_to(json.loads(request.content)["value"])
        return httpx.Response(201, json={"id": str(UUID(int=2))})

    made = respx.post(f"{URL}/variables/").mock(side_effect=bind)
    await bound.binding.check()
    assert made.call_count == 1
    assert bound.thread.ledger.reader.cursor(TAKEN_OVER) is None


async def test_an_evaluator_that_was_down_hands_over_when_it_starts(bound: Bound) -> None:
    bound.record(1)
    bound.belongs_to(OTHER)
    for _ in range(2):
        with pytest.raises(LedgerForeign):
            await bound.binding.bind(take_over=False)
    assert bound.sent() == [UUID(int=1)]


async def test_what_prefect_refuses_does_not_keep_the_evaluator_deciding(bound: Bound) -> None:
    bound.record(1)
    bound.belongs_to(OTHER)
    bound.artifacts.mock(return_value=httpx.Response(422, json={"detail": "Invalid"}))
    with pytest.raises(LedgerForeign):
        await bound.binding.check()
    assert only_here(bound.thread.ledger.reader) == []
