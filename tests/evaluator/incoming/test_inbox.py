"""Recordings reach the ledger complete, in order and once; bad events are refused and stored."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from assetflow.core.values.announcements import Materialized
from assetflow.core.values.events import AssetEvent, Pin, Recording, kept_payload
from assetflow.errors import InvalidEvent, LedgerLocked, StatementRefused
from assetflow.evaluator import health
from assetflow.evaluator.health import Health
from assetflow.evaluator.incoming import inbox as inbox_module
from assetflow.evaluator.incoming.inbox import Inbox
from assetflow.ledger.records import RefusedRecord
from assetflow.prefect_io.names import RECORDING_LABEL
from assetflow.prefect_io.own_events import materialized
from assetflow.prefect_io.recordings import recording_to_artifact, recording_to_prefect_events
from tests.environment.posting import posted_update
from tests.environment.tasks import cancel
from tests.environment.waiting import until_async
from tests.evaluator.fakes import Clock, recording, update
from tests.evaluator.ledgers import START, LedgerHere
from tests.prefect_io.test_own_events import INPUTS, READ, RUN


class Line:
    """A running inbox on a ledger in memory."""

    def __init__(self, ledger: LedgerHere) -> None:
        self.ledger = ledger
        self.clock = Clock()
        self.recorded = 0
        self.missing = 0
        self.health = Health()
        self.began: datetime | None = None
        self.inbox = Inbox(self.ledger, self.health, self.clock, self._on_recorded, self._on_missing, self._starts_of)

    async def _starts_of(self, runs: Sequence[UUID]) -> Mapping[UUID, datetime]:
        return dict.fromkeys(runs, self.began) if self.began else {}

    def _on_recorded(self) -> None:
        self.recorded += 1

    def _on_missing(self) -> None:
        self.missing += 1

    @property
    def events(self) -> list[AssetEvent]:
        """The recorded events, in their order."""
        return [event for each in self.ledger.reader.events.recordings() for event in each.events]

    @property
    def refused(self) -> list[RefusedRecord]:
        """What the ledger keeps as refused, oldest first."""
        return self.ledger.reader.events.refused()[::-1]


@pytest.fixture
async def line(ledger: LedgerHere) -> AsyncIterator[Line]:
    line = Line(ledger)
    task = asyncio.create_task(line.inbox.run())
    yield line
    await cancel(task)


def artifact(of: Recording) -> dict[str, Any]:
    return {"id": str(uuid4()), "created": START.isoformat(), **recording_to_artifact(of)}


def outside(uri: str, **payload: Any) -> dict[str, Any]:
    return posted_update(uri, START, **payload)


async def test_a_part_waits_for_the_others_and_the_artifact_is_requested(line: Line) -> None:
    whole = recording("a", "b")
    line.inbox.take_event(recording_to_prefect_events(whole)[0])
    line.clock.pass_(seconds=1)
    await until_async(lambda: line.missing)
    assert line.ledger.uris == []
    assert not line.inbox.is_idle
    line.inbox.take_artifact(artifact(whole))
    await line.inbox.settled()
    assert line.ledger.uris == ["a", "b"]
    assert line.inbox.is_idle


@pytest.mark.failure(
    "Prefect", "the artifacts cannot be read for minutes, and only a part of a recording arrived as events"
)
async def test_parts_wait_for_a_sweep_of_the_artifacts_however_long_that_takes(line: Line) -> None:
    line.inbox.looked(line.clock.now)
    whole = Recording(uuid4(), (update("a", extra={"rows": 1}), update("a", extra={"rows": 2})))
    line.inbox.take_event(recording_to_prefect_events(whole)[0])
    for _ in range(3):
        line.clock.pass_(minutes=10)
        asked = line.missing
        await until_async(lambda asked=asked: line.missing > asked)
    assert line.ledger.uris == []
    line.inbox.take_artifact(artifact(whole))
    await line.inbox.settled()
    assert line.events == list(whole.events)


async def test_parts_of_two_attempts_are_not_mixed(line: Line) -> None:
    first = recording("a", "b")
    retried = (update("a", START + timedelta(seconds=9)), update("b", START + timedelta(seconds=9)))
    line.inbox.take_event(recording_to_prefect_events(first)[0])
    for event in recording_to_prefect_events(Recording(first.id, retried)):
        line.inbox.take_event(event)
    await line.inbox.settled()
    assert line.events == list(retried)
    line.inbox.take_artifact(artifact(first))
    await line.inbox.settled()
    assert line.events == list(retried)
    assert line.inbox.is_idle


async def test_known_recordings_are_not_written_again(line: Line) -> None:
    whole = recording("a", "b")
    events = recording_to_prefect_events(whole)
    line.inbox.take_artifact(artifact(whole))
    for event in [*events, *events]:
        line.inbox.take_event(event)
    line.inbox.take_artifact(artifact(whole))
    await line.inbox.settled()
    assert [len(batch) for batch in line.ledger.batches] == [1]
    assert line.inbox.is_idle


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (outside("airflow://x"), "airflow"),
        (outside(""), "URI is empty or blank"),
        (outside("a", extra=[1]), "JSON object"),
        (outside("a", partition_key=" "), "partition key is blank"),
        (outside("a", version=99), "version 99"),
        (outside("a") | {"payload": 7}, "payload"),
        (outside("a") | {"resource": {"prefect.resource.id": "a", "assetflow.recording": "x"}}, "recording"),
        (outside("a") | {"id": "no uuid"}, "UUID"),
        (outside("a") | {"resource": None}, "uri is missing"),
        (outside("a", extra={"n": 2**64}), "extra.n is an integer beyond 64 bits"),
        (outside("a\0b"), "control character U+0000"),
        (outside("a", aliases=["\0"]), "not valid text"),
    ],
)
async def test_a_bad_event_is_refused_and_others_are_recorded(line: Line, event: dict[str, Any], reason: str) -> None:
    line.inbox.take_event(outside("before"))
    line.inbox.take_event(event)
    line.inbox.take_event(event)
    line.inbox.take_event(outside("after"))
    await line.inbox.settled()
    assert line.ledger.uris == ["before", "after"]
    assert len(line.refused) == 1
    assert reason in line.refused[0].reason
    assert "Error" not in line.refused[0].reason
    assert line.refused[0].payload == kept_payload(event)


def native(what: str, **changes: Any) -> dict[str, Any]:
    return outside("s3://b/made") | {"event": f"prefect.asset.{what}", "related": [*INPUTS, *RUN], **changes}


async def test_rule_2_9_a_materialization_was_made_from_what_was_recorded_before_its_task_run(line: Line) -> None:
    # Beside it comes an update that says itself what it has read.
    known = replace(update("s3://b/other"), read={"s3://b/input": Pin(3, uuid4(), START)})
    for line.began in (START, None):
        line.inbox.take(Recording(uuid4(), (replace(known, id=uuid4()),)))
        line.inbox.take_event(native("materialization.succeeded"))
        await line.inbox.settled()
    read = [[each.events[0].read for each in batch] for batch in line.ledger.batches]
    [[first, made], [second, unknown]] = read
    assert (first, second, unknown) == (known.read, known.read, {})
    assert {uri: pin.recorded for uri, pin in made.items()} == {READ.uri: START}


async def test_rule_2_9_what_events_tell_of_deployments_is_learned_and_bad_ones_are_refused(line: Line) -> None:
    line.inbox.take_event(native("materialization.failed"))
    line.inbox.take_event(native("referenced", resource={"prefect.resource.id": "s3://b/read"}))
    line.inbox.take_event(native("materialization.failed", resource={}))
    await line.inbox.settled()
    learned = {(each.direction, each.value) for each in line.ledger.reader.lineage.declared()}
    assert learned == {("produces", "s3://b/made"), ("reads", READ.uri), ("reads", "s3://b/read")}
    assert [each.rule for each in line.refused] == ["2.2"]


async def test_rule_2_10_an_event_of_prefects_that_an_evaluator_posted_counts_as_nothing(line: Line) -> None:
    made = update("s3://b/made", partition_key="mon", aliases=("latest",))
    copy = native("materialization.succeeded", resource={"prefect.resource.id": "s3://b/made", RECORDING_LABEL: "x"})
    line.inbox.take_event(copy)
    line.inbox.leave_out(copy, START)
    line.inbox.take(Recording(uuid4(), (made,)))
    line.inbox.take_event(copy)
    await line.inbox.settled()
    assert [(each.partition_key, each.aliases) for each in line.events] == [("mon", ("latest",))]
    assert line.refused == []


async def test_rule_2_10_an_update_of_another_installation_counts_once_beside_the_copy_it_posted(line: Line) -> None:
    theirs = Recording(uuid4(), (update("s3://b/theirs"), update("s3://b/also")))
    posted = recording_to_prefect_events(theirs)
    copies = [copy for each in theirs.events for copy in materialized(Materialized(1, each, ()))]
    for event in (*copies, *posted, *copies, *posted):
        line.inbox.take_event(event)
    await line.inbox.settled()
    assert [each.uri for each in line.events] == ["s3://b/theirs", "s3://b/also"]
    assert line.refused == []


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        ([LedgerLocked("held"), LedgerLocked("held")], None),
        # Known trouble refuses nothing, however long it lasts.
        ([LedgerLocked("held"), StatementRefused("odd"), LedgerLocked("held")], None),
        ([MemoryError(), MemoryError()], None),
        ([ValueError("batch"), ValueError("only the first")], "only the first"),
        ([InvalidEvent("UNIQUE constraint failed")] * 2, "UNIQUE constraint failed"),
        # A reason can be stored and displayed, whatever it quotes.
        ([InvalidEvent("no \x00, no \ud800, no \x1b[31m")] * 2, "no \\x00, no \\ud800, no \\x1b[31m"),
    ],
    ids=str,
)
async def test_only_a_recording_that_cannot_be_written_is_refused(
    line: Line, errors: list[Exception], reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "DOUBT", 0.0)
    line.ledger.fails["record"] = [*errors]
    bad = recording("a")
    line.inbox.take(bad)
    line.inbox.take_event(outside("b"))
    await line.inbox.settled()
    assert line.ledger.uris == (["a", "b"] if reason is None else ["b"])
    assert line.health.troubles == {}
    for refused in line.refused:
        assert (refused.id, reason in refused.reason) == (bad.id, True)  # pyright: ignore[reportOperatorIssue]
        assert [event["uri"] for event in cast(Any, refused.payload)["events"]] == ["a"]
    assert len(line.refused) == (reason is not None)


@pytest.mark.failure(
    "The ledger",
    "the database answers the same updates with an error that assetflow does not know",
    "`/ready` says it at once, status after a minute. After two minutes the evaluator tries the updates one by one, "
    "and keeps those that cannot be recorded as refused",
)
async def test_an_unknown_error_of_the_database_stops_the_queue_only_for_a_while(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch waits, and the log says why; then only the bad recording is refused."""
    monkeypatch.setattr(health, "DOUBT", 0.3)

    def refuses(name: str, given: tuple[Any, ...]) -> Exception | None:
        is_bad = name == "record" and any(event.uri == "bad" for each in given[0] for event in each.events)
        return StatementRefused("the database refuses: parser stack overflow") if is_bad else None

    line.ledger.refuses = refuses
    for uri in ("a", "bad", "b"):
        line.inbox.take_event(outside(uri))
    await until_async(lambda: "parser stack overflow" in line.health.troubles.get("ledger", ""))
    assert line.ledger.uris == []
    assert line.refused == []
    await line.inbox.settled()
    assert line.ledger.uris == ["a", "b"]
    assert "parser stack overflow" in line.refused[0].reason
    assert line.health.troubles == {}


async def test_the_stream_adds_nothing_while_too_much_waits(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "MOST_WAITING", 3)
    events = [outside(f"a{number}") for number in range(5)]
    line.ledger.fails["record"] = [LedgerLocked("held")]
    for event in events:
        line.inbox.hear(event)
    await line.inbox.settled()
    assert line.ledger.uris == ["a0", "a1", "a2"]
    # A sweep brings all of them.
    for event in events:
        line.inbox.take_event(event)
    await line.inbox.settled()
    assert line.ledger.uris == ["a0", "a1", "a2", "a3", "a4"]
