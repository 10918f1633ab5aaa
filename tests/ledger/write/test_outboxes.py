"""What is still to be told to Prefect: updates by tasks, and what checks found. Contract 2.10, chapter 12."""

import json
from datetime import timedelta
from uuid import uuid4

import pytest

from assetflow.core.explain.events import shown_event
from assetflow.core.shapes import as_json
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import CheckResult, Origin, Recording, SourceTaskRun
from assetflow.core.wire.events import event_from_json, recording_from_json, recording_to_json
from assetflow.ledger import Ledger
from assetflow.ledger.write.backfills import MaterializedWriter
from tests.ledger.making import NOW, A, B, C, event, recording, update

TASK = Origin("task", SourceTaskRun(uuid4()))


def outbox(ledger: Ledger) -> MaterializedWriter:
    return MaterializedWriter(ledger.writer.materialized._store)


def numbers(of: MaterializedWriter, limit: int = 10) -> list[tuple[int, bool]]:
    return [(each.number, each.posted is not None) for each in of.to_tell(limit)]


def record(ledger: Ledger, *assets: Asset, minute: int = 0, origin: Origin = TASK) -> None:
    for asset in assets:
        ledger.writer.events.record([update(asset, origin=origin)], NOW + timedelta(minutes=minute))


@pytest.mark.rule("2.10")
def test_updates_by_tasks_are_told_until_the_log_has_them(ledger: Ledger) -> None:
    told = outbox(ledger)
    assert numbers(told) == []
    record(ledger, A, B, C)
    record(ledger, A, origin=Origin("prefect", TASK.task_run))
    assert numbers(told, 2) == [(1, False), (2, False)]
    told.posted([1, 2], NOW)
    told.stored([2], NOW)
    assert numbers(told) == [(1, True), (3, False)]
    assert numbers(outbox(ledger)) == [(1, True), (2, True), (3, False)]
    told.stored([1], NOW)
    assert numbers(outbox(ledger)) == [(3, False)]


@pytest.mark.rule("2.10")
def test_a_ledger_that_knows_no_place_asks_the_log_first(ledger: Ledger) -> None:
    record(ledger, A, B)
    told = outbox(ledger)
    assert numbers(told) == [(1, True), (2, True)]
    record(ledger, C)
    assert numbers(told)[2:] == [(3, False)]


FOUND = (
    CheckResult("at_least", "error", True, "at least 1 row", found=3),
    CheckResult("no_nulls(id)", "warn", False, "no nulls in id", found=1, sample=({"id": None, "state": "öpen"},)),
    CheckResult("sane", "error", False, "sane", note="the check failed: ValueError: NUL \x00"),
)


def test_rule_12_5_an_update_keeps_what_its_checks_found(ledger: Ledger) -> None:
    sent = json.dumps(recording_to_json(recording(event(checks=FOUND[:2]))))
    ledger.writer.events.record([recording_from_json(json.loads(sent))], NOW)
    (recorded,) = ledger.reader.events.find()
    assert recorded.checks == FOUND[:2]
    assert [each["check"] for each in as_json(shown_event(recorded))["checks"]] == ["at_least", "no_nulls(id)"]


def test_rule_12_5_results_never_stop_an_update(ledger: Ledger) -> None:
    plain = {"id": "00000000-0000-0000-0000-000000000001", "uri": "s3://lake/a", "occurred": "2026-01-01T00:00:00Z"}
    for bad in ("text", [1], [{"check": "x"}], {"a": 1}, 7):
        assert event_from_json({**plain, "checks": bad}).checks == ()
    text = json.loads(json.dumps(recording_to_json(recording(event(checks=FOUND[2:])))))
    ledger.writer.events.record([recording_from_json(text)], NOW)
    (recorded,) = ledger.reader.events.find()
    assert recorded.checks[0].note == "the check failed: ValueError: NUL \ufffd"


def held_back(key: str | None = None) -> Recording:
    return Recording(uuid4(), held_back=(event(checks=FOUND, partition_key=key),))


def test_rule_12_6_what_failed_a_check_is_told_once(ledger: Ledger) -> None:
    sent = recording_from_json(json.loads(json.dumps(recording_to_json(held_back()))))
    updates = [recording(event(checks=FOUND[:2])), recording(event())]
    for _ in range(2):
        ledger.writer.events.record([*updates, sent], NOW)
    writer = ledger.writer.failed_checks
    assert [each.held_back for each in writer.to_tell(10)] == [False, True]
    assert len(ledger.reader.events.find()) == 2
    (warned, _) = writer.to_tell(10)
    writer.posted([warned.number], NOW)
    writer.stored([warned.number], NOW)
    (left,) = writer.to_tell(10)
    assert left.posted is None
    assert ledger.reader.pruning.count(NOW + timedelta(days=1)).checks == 1


def test_rule_12_7_a_later_update_makes_a_failed_check_good(ledger: Ledger) -> None:
    checks = ledger.reader.checks
    ledger.writer.events.record([held_back("a"), held_back("b")], NOW)
    later = event(checks=FOUND[:1], occurred=NOW + timedelta(minutes=1), partition_key="b")
    ledger.writer.events.record([recording(later)], NOW)
    assert [each.partition_key for each in checks.not_made_good(NOW)] == ["a"]
    assert [each.event_id for each in checks.history(event().uri, "b")] == [later.id, None]
    assert [len(each.checks) for each in checks.history(event().uri)] == [1, 3, 3]
