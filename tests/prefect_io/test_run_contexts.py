"""Run contexts: what is in them, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, SourceFlowRun
from assetflow.core.wire import RunContext, event_to_json, run_context_from_json, run_context_to_json
from assetflow.errors import InvalidEvent
from tests.golden import agrees

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
NUMBER = UUID("00000000-0000-4000-8000-000000000001")
EVENT = AssetEvent(
    NUMBER,
    Asset("s3://shop/orders", name="orders"),
    NOON,
    Origin("task", flow_run=SourceFlowRun(NUMBER, "run", parameters={"day": 1})),
    {"rows": 3, "files": [{"name": "café"}]},
    "monday",
    ("files",),
    {"seconds": 0.5},
    sequence=7,
    recorded=NOON,
)
WITH_EVENTS = RunContext(NUMBER, "report/daily", "monday", (EVENT,))
OF_A_TICK = RunContext(None, "report/daily", "monday", (), tick=NOON)
IN_AN_ARTIFACT = RunContext(NUMBER, "report/daily", "monday", None, NUMBER)


@pytest.mark.parametrize("name", ["WITH_EVENTS", "OF_A_TICK", "IN_AN_ARTIFACT"])
def test_run_contexts_are_as_agreed(name: str) -> None:
    written = run_context_to_json(globals()[name])
    agrees(f"run_contexts/{name.lower()}", written)
    assert run_context_from_json(written) == globals()[name]


def test_events_are_one_ascii_text() -> None:
    ours: Any = run_context_to_json(WITH_EVENTS)["assetflow"]
    assert ours["version"] == 1
    assert ours["events"].isascii()
    assert json.loads(ours["events"]) == [event_to_json(EVENT)]


@pytest.mark.parametrize("ours", [{"version": 2, "consumer": "x", "events": {"new": "form"}}, "text", [1]])
def test_another_form_says_what_to_do(ours: object) -> None:
    with pytest.raises(InvalidEvent, match="Update assetflow") as caught:
        run_context_from_json({"assetflow": ours})
    assert "the flow run's context" in str(caught.value)
