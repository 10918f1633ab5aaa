"""Prefect's logs are read with an overlap, in order, and only what is new is recorded."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from assetflow.core.values.announcements import Materialized
from assetflow.core.values.events import Recording
from assetflow.errors import PrefectUnreachable
from assetflow.evaluator.health import Health
from assetflow.evaluator.incoming import catch_up
from assetflow.evaluator.incoming.catch_up import CatchUp, Sweeps
from assetflow.evaluator.incoming.inbox import Inbox
from assetflow.prefect_io.own_events import materialized
from assetflow.prefect_io.recordings import recording_to_artifact, recording_to_prefect_events
from tests.environment.posting import posted_update
from tests.environment.tasks import cancel
from tests.evaluator.fakes import Clock, FakeLogs, no_starts, recording
from tests.evaluator.ledgers import START, LedgerHere


class Reading:
    def __init__(self, ledger: LedgerHere) -> None:
        self.ledger = ledger
        self.logs = FakeLogs()
        self.clock = Clock()
        self.clock.pass_(hours=1)
        self.inbox = Inbox(self.ledger, Health(), self.clock, lambda: None, lambda: None, no_starts)
        self.catch_up = self.new_catch_up()

    def new_catch_up(self, floor: datetime = START, sweeps: Sweeps | None = None) -> CatchUp:
        sweeps = sweeps or Sweeps(every=timedelta(days=1))
        return CatchUp(self.logs, self.logs, self.inbox, self.ledger, Health(), self.clock, floor, sweeps)

    def left(self, of: Recording, minutes: float, *, artifact: bool = True, events: bool = True) -> None:
        """Add a recording that a task wrote so many minutes after the ledger was created."""
        at = (START + timedelta(minutes=minutes)).isoformat()
        if artifact:
            self.logs.artifacts.append({"id": str(uuid4()), "created": at, **recording_to_artifact(of)})
        if events:
            self.logs.events += [{**event, "occurred": at, "received": at} for event in recording_to_prefect_events(of)]

    def copied(self, of: Recording, minutes: float) -> None:
        """Add Prefect's own events that an evaluator posted for a recording."""
        at = (START + timedelta(minutes=minutes)).isoformat()
        copies = [copy for event in of.events for copy in materialized(Materialized(1, event))]
        self.logs.events += [{**copy, "occurred": at, "received": at} for copy in copies]

    def posted(self, uri: str, minutes: float) -> dict[str, Any]:
        event = posted_update(uri, START + timedelta(minutes=minutes)) | {"received": self.clock.now.isoformat()}
        self.logs.events.append(event)
        return event


@pytest.fixture
async def reading(ledger: LedgerHere) -> AsyncIterator[Reading]:
    reading = Reading(ledger)
    task = asyncio.create_task(reading.inbox.run())
    yield reading
    await cancel(task)


async def test_a_recording_is_complete_from_its_artifact_alone_and_from_its_events_alone(reading: Reading) -> None:
    reading.left(recording("a1", "a2"), 1, events=False)
    reading.left(recording("b1", "b2"), 2, artifact=False)
    await reading.catch_up.start()
    assert [len(each.events) for each in reading.ledger.batches[0]] == [2, 2]


async def test_rule_2_10_a_ledger_rebuilt_from_the_logs_counts_an_update_and_its_copy_once(reading: Reading) -> None:
    kept, told, gone = recording("s3://b/kept"), recording("s3://b/told"), recording("s3://b/gone")
    for made, minutes in ((kept, -50), (told, -40), (gone, -30)):
        reading.copied(made, minutes - 1)
        reading.copied(made, minutes + 1)
    reading.left(kept, -50, events=False)
    reading.left(told, -40, artifact=False)
    reading.posted("s3://b/posted", -20)
    rebuilt = reading.new_catch_up(floor=START - timedelta(hours=1))
    await rebuilt.start()
    await rebuilt.full_sweep()
    assert reading.ledger.uris == ["s3://b/kept", "s3://b/told", "s3://b/posted"]
    assert reading.ledger.reader.events.refused() == []


async def test_the_cursor_moves_only_when_everything_is_in_the_ledger(reading: Reading) -> None:
    reading.logs.fails = [PrefectUnreachable("down")]
    reading.posted("a", 1)
    with pytest.raises(PrefectUnreachable):
        await reading.catch_up.start()
    assert reading.ledger.read_until("artifacts") is reading.ledger.read_until("events") is None
    await reading.catch_up.start()
    assert reading.ledger.uris == ["a"]


@pytest.mark.failure("Prefect", "the clock of the evaluator's machine was ahead and is corrected")
async def test_cursors_from_a_clock_that_was_ahead_hide_no_updates(reading: Reading) -> None:
    """The clock of the last evaluator was two hours ahead, and so are its cursors."""
    ahead = reading.clock.now + timedelta(hours=2)
    for name in ("artifacts", "events"):
        await reading.ledger.set_cursor(name, ahead)
    await reading.catch_up.start()
    reading.clock.pass_(seconds=5)
    reading.posted("posted", 60.05)
    reading.left(recording("task"), 60.06, events=False)
    await reading.catch_up.sweep(Sweeps().overlap)
    assert reading.ledger.uris == ["posted", "task"]
    reading.clock.pass_(seconds=30)
    await reading.catch_up.sweep(Sweeps().overlap)
    assert reading.ledger.read_until("events") == reading.clock.now


@pytest.mark.rule("2.6")
async def test_the_next_look_finds_an_event_whose_producer_is_an_hour_behind(reading: Reading) -> None:
    reading.clock.pass_(hours=30)
    reading.posted("known", 10 * 60)
    await reading.catch_up.start()
    await reading.catch_up.late_events()
    reading.posted("an hour behind", 30 * 60)
    await reading.catch_up.late_events()
    assert reading.ledger.uris == ["known", "an hour behind"]


async def test_rule_2_6_an_event_from_before_the_ledger_that_comes_later_is_refused(reading: Reading) -> None:
    history = reading.posted("history", -60)
    history["received"] = history["occurred"]
    reading.left(recording("of a task"), -60, artifact=False)
    for each in reading.logs.events:
        each.setdefault("received", reading.clock.now.isoformat())
    reading.clock.pass_(hours=1)
    for _ in range(2):
        late = reading.posted("late", -59)
        await reading.catch_up.late_events()
        await reading.inbox.settled()
    assert reading.ledger.uris == []
    last, first = reading.ledger.reader.events.refused()
    assert last.payload == late
    assert f"it occurred at {late['occurred']}, before this ledger began" in first.reason


async def test_a_long_backlog_is_handed_over_in_slices(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefect becomes unreachable in the middle: what was read is recorded, and the next evaluator continues there."""
    monkeypatch.setattr(catch_up, "SLICE", 10)
    for number in range(55):
        reading.posted(f"a{number}", number)
    reading.logs.breaks_after = 42
    with pytest.raises(PrefectUnreachable):
        await reading.catch_up.start()
    await reading.inbox.settled()
    assert reading.ledger.uris == [f"a{number}" for number in range(42)]
    assert max(len(batch) for batch in reading.ledger.batches) <= 10
    assert reading.ledger.read_until("events") == START + timedelta(minutes=39)
    assert reading.ledger.read_until("artifacts") == START + timedelta(minutes=39)
    reading.logs.asked.clear()
    await reading.new_catch_up().start()
    assert reading.ledger.uris == [f"a{number}" for number in range(55)]
    assert reading.logs.asked[0][0] == START + timedelta(minutes=39) - Sweeps().overlap
