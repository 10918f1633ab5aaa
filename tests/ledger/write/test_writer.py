"""The operations of the writer, and what the reader returns after them."""

import json
from dataclasses import replace
from datetime import timedelta
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import Origin, SourceFlowRun, SourceTaskRun
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.errors import InvalidSchedule, NameTaken, UnknownConsumer, UnknownEvent
from assetflow.ledger import Ledger, Reader
from assetflow.ledger.records import EventFilter
from tests.ledger.making import NOW, A, B, C, declared, deploy, event, recording, update

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


def test_asset_keeps_what_was_declared_last(ledger: Ledger) -> None:
    for asset in (A, Asset(A.uri, group="g", extra={"a": 1}), Asset(A.uri, name="nice", group="h"), A):
        ledger.writer.events.record([update(asset, aliases=("x",))], NOW)
    [record] = ledger.reader.assets.all()
    assert (record.uri, record.group, record.extra, record.first_seen) == (A.uri, "h", {"a": 1}, NOW)
    assert record.names == ("nice", A.uri)
    assert record.aliases == ("x",)


def test_events_by_asset_alias_time_and_place(ledger: Ledger) -> None:
    times = [NOW + timedelta(minutes=minute) for minute in range(6)]
    for minute, moment in enumerate(times):
        aliases = ("x",) if minute % 2 else ()
        ledger.writer.events.record([update(A if minute < 4 else B, occurred=moment, aliases=aliases)], NOW)
    reader = ledger.reader

    def places(where: EventFilter, **options: Any) -> list[int | None]:
        return [each.sequence for each in reader.events.find(where, **options)]

    assert places(EventFilter()) == [1, 2, 3, 4, 5, 6]
    assert places(EventFilter(uri=A.uri)) == [1, 2, 3, 4]
    assert places(EventFilter(uri=A.uri), newest_first=True, limit=2) == [4, 3]
    assert places(EventFilter(uri=A.uri), limit=2, offset=1) == [2, 3]
    assert places(EventFilter(alias="x")) == [2, 4, 6]
    assert places(EventFilter(alias="x", uri=B.uri)) == [6]
    assert places(EventFilter(alias="x", from_sequence=3), newest_first=True) == [6, 4]
    assert places(EventFilter(after=times[1], before=times[4])) == [3, 4]
    assert places(EventFilter(from_sequence=2, to_sequence=3)) == [2, 3]
    assert reader.events.count(EventFilter(alias="x")) == 3
    newest = reader.events.newest([A.uri, C.uri])
    assert {uri: pin.sequence for uri, pin in newest.items()} == {A.uri: 4}
    assert newest[A.uri].event == reader.events.find(EventFilter(from_sequence=4, to_sequence=4))[0].id


def test_a_known_id_with_other_content_leads_to_a_warning(ledger: Ledger) -> None:
    first = event(A, extra={"n": 1})
    other = replace(first, extra={"n": 2})
    for each, told in ((first, []), (first, []), (other, [str(first.id)]), (other, [str(first.id)])):
        [(recorded, _)] = ledger.writer.events.record([recording(each)], NOW)
        assert [number in warning for number in told for warning in recorded.warnings] == [True] * len(told)
        assert len(recorded.warnings) == len(told)
    [read] = ledger.reader.events.find()
    assert read.extra == {"n": 1}


def test_a_part_of_a_large_refused_payload_is_kept(ledger: Ledger) -> None:
    """It may contain what a database cannot hold, such as NUL in a reason on Postgres."""
    ledger.writer.events.refuse({"id": 7, "data": "x" * 1_000_000}, "too bad\0\udce9", "2.7", "prefect", uuid4(), NOW)
    ledger.writer.events.refuse({"n": 10**5000, "r": float("nan"), "f": "\udce9"}, "bad", None, "api", None, NOW)
    small, large = ledger.reader.events.refused()
    assert large.reason == "too bad\ufffd\ufffd"
    assert len(str(large.payload)) < 20_000
    assert small.payload == {"n": hex(10**5000), "r": "NaN", "f": "\ufffd"}


def test_refused_is_kept_once(ledger: Ledger) -> None:
    number = uuid4()
    assert ledger.writer.events.refuse({"uri": ""}, "blank", "1.5", "prefect", number, NOW)
    assert not ledger.writer.events.refuse({"uri": ""}, "blank", "1.5", "prefect", number, LATER)
    assert ledger.writer.events.refuse([1], "no object", None, "api", None, NOW)
    assert not ledger.writer.events.refuse([1], "no object", None, "api", None, NOW)
    newest, oldest = ledger.reader.events.refused()
    told = (oldest.id, oldest.payload, oldest.reason, oldest.rule, oldest.at)
    assert told == (number, {"uri": ""}, "blank", "1.5", NOW)
    assert newest.payload == [1]
    assert ledger.reader.events.known([number, uuid4()]) == {number}


def test_deploying_again_is_a_change(ledger: Ledger) -> None:
    deployment = uuid4()
    consumer = deploy(ledger, A & B, deployment_id=deployment)
    ledger.writer.consumers.switch(consumer.id, paused=True, now=NOW)
    again = deploy(ledger, A & C, deployment_id=deployment)
    assert (again.id, again.paused, again.schedule) == (consumer.id, True, to_schedule(A & C))
    assert [record.consumer for record in ledger.reader.consumers.all()] == [again]


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


def test_remove_queued_by_asset_and_time(ledger: Ledger) -> None:
    one = deploy(ledger, A & B & C, "f/one")
    two = deploy(ledger, A & B & C, "f/two")
    ledger.writer.events.record([update(A, occurred=LATER)], NOW)
    ledger.writer.events.record([update(A), update(B)], LATER)
    assert ledger.writer.queues.remove(one.id, uri=A.uri, before=LATER, by="me", why="wrong", now=NOW) == 1
    assert ledger.writer.queues.remove(None, uri=A.uri, now=NOW) == 3
    assert [[e.sequence for e in ledger.reader.queues.events(each.id)] for each in (one, two)] == [[3], [3]]
    first = ledger.reader.events.find()[0]
    receipt = ledger.reader.receipts.of_event(first.id)[0]
    assert (receipt.receipt.status, receipt.receipt.by, receipt.receipt.why) == ("removed", "me", "wrong")
    assert receipt.consumer_name == "f/one"
    assert ledger.reader.queues.sizes() == {one.id: 1, two.id: 1}


def test_a_decision_is_launched_and_ends(ledger: Ledger) -> None:
    consumer = deploy(ledger, A)
    automation, run = uuid4(), uuid4()
    ledger.writer.consumers.set_automation(consumer.id, automation)
    [(_, [decision])] = ledger.writer.events.record([update(A)], NOW)
    [(waiting, events)] = ledger.reader.decisions.waiting()
    assert (waiting.id, waiting.consumer_name, waiting.automation_id) == (decision.id, "flow/one", automation)
    assert events == decision.events
    ledger.writer.decisions.attempt_failed(decision.id, "503")
    ledger.writer.decisions.launched(decision.id, run, LATER)
    ledger.writer.decisions.launched(decision.id, run, LATER)
    assert ledger.reader.decisions.waiting() == []
    [running] = ledger.reader.decisions.running()
    assert (running.flow_run_id, running.launched, running.attempts, running.error) == (run, LATER, 1, "")
    assert ledger.writer.decisions.ended("Completed", LATER, flow_run_id=run) == []
    assert ledger.writer.decisions.ended("Completed", LATER, flow_run_id=run) is None
    found = ledger.reader.decisions.of_run(run)
    assert found is not None
    assert (found.status, found.run_state, found.ended) == ("ended", "Completed", LATER)
    assert found == ledger.reader.decisions.get(decision.id)


def test_oldest_waiting_decision_comes_first(ledger: Ledger) -> None:
    deploy(ledger, A)
    ledger.writer.events.record([update(A), update(A), update(A)], NOW)
    assert [record.number for record, _ in ledger.reader.decisions.waiting(limit=2)] == [1, 2]
    assert [record.number for record in ledger.reader.decisions.find(limit=2)] == [3, 2]
    assert [record.number for record in ledger.reader.decisions.find(before=2)] == [1]


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


def test_edges_follow_the_declaration(ledger: Ledger) -> None:
    deployment, producer = uuid4(), uuid4()

    def text(*produces: Asset) -> str:
        reads = (AssetAlias("x"), Asset.ref(name="n"))
        return declaration_to_text(FlowDeclaration(ConsumerOptions(to_schedule(A)), produces, reads))

    consumer, _ = ledger.writer.consumers.deploy("f/d", deployment, None, text(B, C, B), False, False, NOW)
    ledger.writer.consumers.change(consumer.id, text(C), NOW)
    ledger.writer.lineage.declare(producer, "p/d", text(A), NOW)
    edges = {(e.name, e.direction, e.kind, e.value) for e in ledger.reader.lineage.declared()}
    reads = {("reads", "alias", "x"), ("reads", "name", "n")}
    assert edges == {
        *((name, *edge) for name in ("f/d", "p/d") for edge in reads),
        ("f/d", "produces", "uri", C.uri),
        ("p/d", "produces", "uri", A.uri),
    }
    ledger.writer.consumers.forget(producer, NOW)
    ledger.writer.consumers.remove(consumer.id, NOW)
    assert ledger.reader.lineage.declared() == []


def test_declaration_text_is_kept_as_given(ledger: Ledger) -> None:
    text = json.dumps(json.loads(declared(A)), indent=1)
    flow = uuid4()
    consumer, _ = ledger.writer.consumers.deploy("f/d", uuid4(), flow, text, False, True, NOW)
    ledger.writer.consumers.switch(consumer.id, held=False, now=NOW)
    record = ledger.reader.consumers.named("f/d")
    assert record is not None
    assert (record.declaration, record.flow_id, record.since) == (text, flow, NOW)
    assert record.consumer == replace(consumer, held=False)
    assert ledger.reader.consumers.named("f/other") is None


def test_cursor_and_address_are_kept(ledger: Ledger) -> None:
    assert ledger.reader.cursor("events") is None
    for value in ({"at": "2026"}, [1, None]):
        ledger.writer.set_cursor("events", value)
        assert ledger.reader.cursor("events") == value
    assert ledger.reader.prefect_api_url() is None
    ledger.writer.set_prefect_api_url("http://127.0.0.1:4200/api")
    assert ledger.reader.prefect_api_url() == "http://127.0.0.1:4200/api"


def test_status_counts(ledger: Ledger) -> None:
    deploy(ledger, A)
    ledger.writer.events.record([update(A), update(A), update(B)], NOW)
    ledger.writer.events.refuse({}, "bad", None, "api", None, NOW)
    [(first, _), _] = ledger.reader.decisions.waiting()
    ledger.writer.decisions.launched(first.id, uuid4(), LATER)
    status = ledger.reader.status()
    assert (status.assets, status.consumers, status.last_event, status.last_decision) == (2, 1, 3, 2)
    assert (status.waiting, status.running, status.undeliverable, status.refused) == (1, 1, 0, 1)
    assert status.oldest_waiting == NOW


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
