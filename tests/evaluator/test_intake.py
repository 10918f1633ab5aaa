"""What comes in reaches the ledger whole, in order, once, and bad things are kept as refused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from assetflow.core.assets import Asset
from assetflow.core.events import Recording
from assetflow.errors import LedgerLocked
from assetflow.evaluator.health import Health
from assetflow.evaluator.intake import LARGEST_BATCH, Intake
from assetflow.prefect_io.recordings import recording_to_artifact, recording_to_prefect_events
from tests.evaluator.fakes import START, Clock, FakeLedger, recording, until, update


class Line:
    """An intake at work on a ledger in memory."""

    def __init__(self) -> None:
        self.ledger = FakeLedger()
        self.clock = Clock()
        self.recorded = 0
        self.missing = 0
        self.health = Health()
        self.intake = Intake(self.ledger, self.health, self.clock, self._on_recorded, self._on_missing)

    def _on_recorded(self) -> None:
        self.recorded += 1

    def _on_missing(self) -> None:
        self.missing += 1


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    line = Line()
    task = asyncio.create_task(line.intake.run())
    yield line
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def artifact(of: Recording) -> dict[str, Any]:
    return {"id": str(uuid4()), "created": START.isoformat(), **recording_to_artifact(of)}


def outside(uri: str, **payload: Any) -> dict[str, Any]:
    return {
        "id": str(uuid4()),
        "event": "assetflow.asset.updated",
        "occurred": START.isoformat(),
        "resource": {"prefect.resource.id": uri},
        "related": [],
        "payload": payload,
    }


async def test_what_waits_is_written_together_in_the_order_of_its_acceptance(line: Line) -> None:
    for uri in "abc":
        line.intake.hear(outside(uri))
    await line.intake.settled()
    assert line.ledger.uris == ["a", "b", "c"]
    assert [len(batch) for batch in line.ledger.batches] == [3]
    assert line.recorded == 1


async def test_the_log_names_what_was_recorded(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    given = recording("a")
    with caplog.at_level(logging.INFO, "assetflow.evaluator"):
        line.intake.take(given)
        await line.intake.settled()
    (told,) = (each for each in caplog.records if each.message.startswith("updates recorded: 1"))
    assert vars(told)["recordings"] == [str(given.id)]


async def test_a_long_line_is_written_in_parts(line: Line) -> None:
    for number in range(LARGEST_BATCH + 1):
        line.intake.hear(outside(f"a{number}"))
    await line.intake.settled()
    assert [len(batch) for batch in line.ledger.batches] == [LARGEST_BATCH, 1]


async def test_a_recording_of_two_events_starts_a_consumer_of_either_once(line: Line) -> None:
    line.ledger.consumer("either", Asset("a") | Asset("b"))
    for event in recording_to_prefect_events(recording("a", "b")):
        line.intake.hear(event)
    await until(lambda: len(line.ledger.uris) == 2)
    assert [sorted(event.uri for event in decision.events) for decision in line.ledger.book.decisions] == [["a", "b"]]


async def test_a_part_alone_waits_and_the_artifact_is_asked_for(line: Line) -> None:
    whole = recording("a", "b")
    line.intake.hear(recording_to_prefect_events(whole)[0])
    line.clock.pass_(seconds=1)
    await until(lambda: line.missing)
    assert line.ledger.uris == []
    assert not line.intake.is_idle
    line.intake.take_artifact(artifact(whole))
    await line.intake.settled()
    assert line.ledger.uris == ["a", "b"]
    assert line.intake.is_idle


async def test_parts_without_an_artifact_are_not_lost(line: Line) -> None:
    line.intake.hear(recording_to_prefect_events(recording("a", "b"))[0])
    line.clock.pass_(seconds=61)
    await until(lambda: line.ledger.uris == ["a"])


async def test_parts_of_two_attempts_are_never_mixed(line: Line) -> None:
    first = recording("a", "b")
    retried = (update("a", START + timedelta(seconds=9)), update("b", START + timedelta(seconds=9)))
    line.intake.hear(recording_to_prefect_events(first)[0])
    for event in recording_to_prefect_events(Recording(first.id, retried)):
        line.intake.hear(event)
    await line.intake.settled()
    assert line.ledger.book.events == list(retried)
    line.intake.take_artifact(artifact(first))
    await line.intake.settled()
    assert line.ledger.book.events == list(retried)
    assert line.intake.is_idle


async def test_what_the_ledger_has_is_not_written_again(line: Line) -> None:
    whole = recording("a", "b")
    events = recording_to_prefect_events(whole)
    line.intake.take_artifact(artifact(whole))
    for event in [*events, *events]:
        line.intake.hear(event)
    line.intake.take_artifact(artifact(whole))
    await line.intake.settled()
    assert [len(batch) for batch in line.ledger.batches] == [1]
    assert line.intake.is_idle


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (outside("airflow://x"), "airflow"),
        (outside(""), ""),
        (outside("a", extra=[1]), "JSON object"),
        (outside("a", partition_key=" "), ""),
        (outside("a", version=99), "version 99"),
        (outside("a") | {"payload": 7}, "payload"),
        (outside("a") | {"resource": {"prefect.resource.id": "a", "assetflow.recording": "x"}}, "recording"),
        (outside("a") | {"id": "no uuid"}, "UUID"),
        (outside("a") | {"resource": None}, ""),
    ],
)
async def test_a_bad_event_is_kept_as_refused_and_harms_no_other(
    line: Line, event: dict[str, Any], reason: str
) -> None:
    line.intake.hear(outside("before"))
    line.intake.hear(event)
    line.intake.hear(event)
    line.intake.hear(outside("after"))
    await line.intake.settled()
    assert line.ledger.uris == ["before", "after"]
    assert len(line.ledger.refused) == 1
    assert reason in line.ledger.refused[0].reason
    assert line.ledger.refused[0].event == event


async def test_a_damaged_artifact_is_kept_as_refused(line: Line) -> None:
    line.intake.take_artifact({"id": str(uuid4()), "created": START.isoformat(), "data": "{"})
    await line.intake.settled()
    assert "no JSON" in line.ledger.refused[0].reason


async def test_events_of_others_are_nothing(line: Line) -> None:
    line.intake.hear({**outside("a"), "event": "prefect.flow-run.Completed"})
    assert line.intake.is_idle


async def test_a_ledger_in_trouble_is_tried_again_and_nothing_is_lost(line: Line) -> None:
    line.ledger.fails["record"] = [LedgerLocked("held"), LedgerLocked("held")]
    line.intake.hear(outside("a"))
    line.intake.hear(outside("b"))
    await line.intake.settled()
    assert line.ledger.uris == ["a", "b"]
    assert line.health.troubles == {}


async def test_a_recording_that_cannot_be_recorded_is_set_aside(line: Line) -> None:
    line.ledger.fails["record"] = [ValueError("batch"), ValueError("only the first")]
    line.intake.hear(outside("a"))
    line.intake.hear(outside("b"))
    await line.intake.settled()
    assert line.ledger.uris == ["b"]
    assert "only the first" in line.ledger.refused[0].reason
