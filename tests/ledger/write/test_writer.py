"""The operations of the writer, and what the reader returns after them."""

from datetime import timedelta
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Origin, Recording, SourceFlowRun, SourceTaskRun
from assetflow.errors import InvalidSchedule, NameTaken, UnknownConsumer, UnknownEvent
from assetflow.ledger import Ledger, Reader
from assetflow.ledger.records import EventFilter
from tests.ledger.making import NOW, A, B, declared, deploy, event, recording, update

LATER = NOW + timedelta(hours=1)


def test_event_comes_back_as_it_was(ledger: Ledger) -> None:
    run = SourceFlowRun(uuid4(), "run", uuid4(), "flow", uuid4(), "deployment", {"day": [1, {"x": None}]}, NOW)
    made = event(
        Asset("s3://lake/a", name="ä name", group="lake", extra={"owner": "me"}),
        origin=Origin("task", SourceTaskRun(uuid4(), "task"), run),
        extra={"z": 1, "a": "\u0000 \ud83d \U0001f600", "__prefect_kind": "x"},
        metrics={"rows": 5, "seconds": 0.5},
        aliases=("x", "y"),
        code_version="1",
        data_version="2",
        inputs={"s3://lake/b": 7},
    )
    ledger.writer.events.record([recording(made)], LATER)
    [read] = ledger.reader.events.find()
    for name in made.__dataclass_fields__:
        if name not in ("sequence", "recorded"):
            assert getattr(read, name) == getattr(made, name), name
    assert (read.asset.name, read.asset.group, read.asset.extra) == ("ä name", "lake", {"owner": "me"})
    assert (read.sequence, read.recorded) == (1, LATER)
    assert list(read.extra) == ["z", "a", "__prefect_kind"]
    assert ledger.reader.events.find(EventFilter(flow_run_id=run.id)) == [made]


@pytest.mark.rule("2.2")
def test_an_attempt_comes_in_parts_and_a_later_one_is_no_other_update(ledger: Ledger) -> None:
    run, parts, later = uuid4(), (event(), event(extra={"part": 2})), event(occurred=LATER)
    for each in (*parts, later, *parts):
        ledger.writer.events.record([Recording(run, (each,))], LATER)
    assert [each.id for each in ledger.reader.events.find()] == [each.id for each in parts]


@pytest.mark.parametrize("has", [{"group": "lake"}, {"extra": {"owner": "me"}}])
def test_an_asset_that_is_told_without_a_description_keeps_it(ledger: Ledger, has: dict[str, Any]) -> None:
    for asset in (Asset(A.uri, group="first"), Asset(A.uri, **has), A):
        ledger.writer.events.record([update(asset)], NOW)
    read = ledger.reader.assets.get(uri=A.uri)
    assert read is not None
    assert (read.record.group, read.record.extra) == (has.get("group", "first"), has.get("extra", {}))


def test_same_name_of_another_deployment_is_a_new_consumer(ledger: Ledger) -> None:
    old = deploy(ledger, A & B)
    ledger.writer.events.record([update(A)], NOW)
    new = deploy(ledger, A & B)
    assert new.id != old.id
    assert ledger.reader.queues.events(new.id) == []
    [event_] = ledger.reader.events.find()
    assert [r.receipt.status for r in ledger.reader.receipts.of_event(event_.id)] == ["superseded"]
    assert [record.consumer.id for record in ledger.reader.consumers.all(removed=True)] == [old.id]


def test_bad_declarations_change_nothing(ledger: Ledger) -> None:
    ledger.writer.events.record([update(Asset(A.uri, name="nice"))], NOW)
    with pytest.raises(NameTaken):
        deploy(ledger, Asset(B.uri, name="nice"))
    with pytest.raises(InvalidSchedule):
        ledger.writer.consumers.deploy("f/d", uuid4(), None, "{", False, False, NOW)
    assert ledger.reader.consumers.all() == []
    consumer = deploy(ledger, A)
    with pytest.raises(NameTaken):
        ledger.writer.consumers.change(consumer.id, declared(Asset(B.uri, name="nice")), NOW)
    assert [record.consumer for record in ledger.reader.consumers.all()] == [consumer]


def test_unknown_consumers_are_named(ledger: Ledger) -> None:
    for call in (
        lambda: ledger.writer.consumers.change(7, declared(A), NOW),
        lambda: ledger.writer.consumers.switch(7, paused=True, now=NOW),
        lambda: ledger.writer.consumers.remove(7, NOW),
        lambda: ledger.writer.queues.remove(7, now=NOW),
    ):
        with pytest.raises(UnknownConsumer, match="7"):
            call()


def test_undeliverable_is_listed_and_replayed(ledger: Ledger) -> None:
    deploy(ledger, A)
    [(_, [decision])] = ledger.writer.events.record([update(A)], NOW)
    ledger.writer.decisions.undeliverable(decision.id, "deployment is gone", NOW)
    [record] = ledger.reader.decisions.find(status="undeliverable")
    assert (record.error, ledger.reader.status().undeliverable) == ("deployment is gone", 1)
    assert ledger.reader.decisions.waiting() == []
    ledger.writer.decisions.replay(decision.id, NOW)
    assert [each.id for each, _ in ledger.reader.decisions.waiting()] == [decision.id]
    with pytest.raises(UnknownEvent):
        ledger.writer.decisions.replay(decision.id, NOW)
    with pytest.raises(UnknownEvent):
        ledger.writer.decisions.launched(uuid4(), uuid4(), NOW)


@pytest.mark.rule("4.7")
def test_a_decision_that_is_given_up_is_the_end_of_a_coalescing_run(ledger: Ledger) -> None:
    deploy(ledger, A, coalesce=True)
    [(_, [first]), (_, none)] = ledger.writer.events.record([update(A), update(A)], NOW)
    assert none == []
    [second] = ledger.writer.decisions.undeliverable(first.id, "refused", LATER)
    assert [e.sequence for e in second.events] == [2]


def test_reader_reads_while_the_writer_writes(sqlite_ledger: Ledger) -> None:
    sqlite_ledger.writer.events.record([update(A)], NOW)
    with Reader.open(sqlite_ledger.place) as reader, sqlite_ledger.writes() as connection:
        connection.exec_driver_sql("DELETE FROM receipt")
        connection.exec_driver_sql("DELETE FROM event")
        assert reader.events.count() == 1
        assert (reader.id, reader.created) == (sqlite_ledger.id, sqlite_ledger.created)


def test_threads_write_one_after_the_other(ledger: Ledger) -> None:
    deploy(ledger, A)
    threads = [Thread(target=lambda: ledger.writer.events.record([update(A)], NOW)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.sequence for e in ledger.reader.events.find()] == list(range(1, 9))
    assert len(ledger.reader.decisions.find()) == 8
