"""The event of a decision: what automations of users can read in it."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from assetflow.core.values.consumers import Decision
from assetflow.core.values.keeping import Cause
from assetflow.prefect_io.own_events import CAUSES_NAMED, decision_made

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)


def payload(*because: Cause) -> dict[str, object]:
    decision = Decision(UUID(int=5), 1, UUID(int=6), "k", (), NOW, "eager", because=because)
    return decision_made(decision, "core/main", None, UUID(int=7), NOW.isoformat())["payload"]


def test_rule_8_5_the_event_says_why_an_eager_flow_was_asked_for_the_run() -> None:
    raw = {"kind": "data", "uri": "s3://shop/raw", "partition_key": "k"}
    found = payload(Cause("data", "s3://shop/raw", "k"), Cause("code"))
    assert found["because"] == [raw, {"kind": "code", "uri": None, "partition_key": None}]


def test_of_very_many_causes_the_first_are_named() -> None:
    found = payload(*(Cause("data", f"s3://shop/{number}") for number in range(CAUSES_NAMED + 5)))
    assert isinstance(found["because"], list)
    assert len(found["because"]) == CAUSES_NAMED


def test_other_decisions_have_no_causes() -> None:
    assert "because" not in payload()
