"""Prefect's logs are read with an overlap, in order, and only what is new is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from assetflow.core.events import Recording
from assetflow.errors import PrefectUnreachable
from assetflow.evaluator.catch_up import CatchUp, Sweeps
from assetflow.evaluator.health import Health
from assetflow.evaluator.intake import Intake
from assetflow.prefect_io.recordings import recording_to_artifact, recording_to_prefect_events
from tests.evaluator.fakes import START, Clock, FakeLedger, FakeLogs, recording, until


class Reading:
    def __init__(self) -> None:
        self.ledger = FakeLedger()
        self.logs = FakeLogs()
        self.clock = Clock()
        self.clock.pass_(hours=1)
        health = Health()
        self.intake = Intake(self.ledger, health, self.clock, lambda: None, lambda: None)
        self.catch_up = CatchUp(
            self.logs, self.logs, self.intake, self.ledger, health, self.clock, START, Sweeps(every=timedelta(days=1))
        )

    def left(self, of: Recording, minutes: float, *, artifact: bool = True, events: bool = True) -> None:
        """A task left this recording, so many minutes after the ledger was made."""
        at = (START + timedelta(minutes=minutes)).isoformat()
        if artifact:
            self.logs.artifacts.append({"id": str(uuid4()), "created": at, **recording_to_artifact(of)})
        if events:
            self.logs.events += [{**event, "occurred": at} for event in recording_to_prefect_events(of)]

    def posted(self, uri: str, minutes: float) -> dict[str, Any]:
        event = {
            "id": str(uuid4()),
            "event": "assetflow.asset.updated",
            "occurred": (START + timedelta(minutes=minutes)).isoformat(),
            "resource": {"prefect.resource.id": uri},
            "payload": {},
        }
        self.logs.events.append(event)
        return event


@pytest.fixture
async def reading() -> AsyncIterator[Reading]:
    reading = Reading()
    task = asyncio.create_task(reading.intake.run())
    yield reading
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_backlog_of_both_logs_is_recorded_in_the_order_of_time(reading: Reading) -> None:
    reading.left(recording("c"), 30)
    reading.posted("b", 20)
    reading.left(recording("a1", "a2"), 10)
    await reading.catch_up.start()
    assert reading.ledger.uris == ["a1", "a2", "b", "c"]


async def test_a_recording_is_whole_from_its_artifact_alone_and_from_its_events_alone(reading: Reading) -> None:
    reading.left(recording("a1", "a2"), 1, events=False)
    reading.left(recording("b1", "b2"), 2, artifact=False)
    await reading.catch_up.start()
    assert [len(each.events) for each in reading.ledger.batches[0]] == [2, 2]


async def test_what_was_before_the_ledger_stays_outside(reading: Reading) -> None:
    reading.left(recording("old"), -1)
    reading.posted("older", -2)
    await reading.catch_up.whole_window()
    assert reading.ledger.uris == []


async def test_the_next_evaluator_goes_on_where_this_one_stopped(reading: Reading) -> None:
    await reading.catch_up.start()
    assert reading.ledger.cursors["events"] == START + timedelta(hours=1)
    reading.ledger.cursors["artifacts"] = START + timedelta(minutes=50)
    await reading.catch_up.start()
    overlap = Sweeps().overlap
    assert reading.logs.asked[-1][0] == START + timedelta(hours=1) - overlap


async def test_an_event_that_was_stored_late_is_found_by_the_overlap(reading: Reading) -> None:
    await reading.catch_up.start()
    reading.posted("late", 59.8)
    reading.posted("later", 50)
    await reading.catch_up.sweep(Sweeps().overlap)
    assert reading.ledger.uris == ["late"]
    await reading.catch_up.sweep(Sweeps().wide_overlap)
    assert reading.ledger.uris == ["late", "later"]


async def test_a_producer_whose_clock_is_ahead_is_heard(reading: Reading) -> None:
    reading.posted("ahead", 66)
    await reading.catch_up.start()
    assert reading.ledger.uris == ["ahead"]


async def test_the_cursor_moves_only_when_all_is_in_the_ledger(reading: Reading) -> None:
    reading.logs.fails = [PrefectUnreachable("down")]
    reading.posted("a", 1)
    with pytest.raises(PrefectUnreachable):
        await reading.catch_up.start()
    assert reading.ledger.cursors == {}
    await reading.catch_up.start()
    assert reading.ledger.uris == ["a"]


async def test_sweeping_on_demand(reading: Reading) -> None:
    loop = asyncio.create_task(reading.catch_up.run())
    await until(lambda: reading.logs.asked)
    reading.posted("a", 59.9)
    reading.catch_up.want()
    await until(lambda: reading.ledger.uris == ["a"])
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)
