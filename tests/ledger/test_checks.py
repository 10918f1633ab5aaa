"""What checks found travels with an update, through Prefect and the ledger. Contract 12.5."""

from __future__ import annotations

import json

from assetflow.core.explain.events import shown_event
from assetflow.core.shapes import as_json
from assetflow.core.values.checks import CheckResult
from assetflow.core.wire.events import event_from_json, recording_from_json, recording_to_json
from assetflow.ledger import Ledger
from tests.ledger.making import NOW, event, recording

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


def test_events_without_checks_are_no_larger() -> None:
    assert "checks" not in json.dumps(recording_to_json(recording(event())))
