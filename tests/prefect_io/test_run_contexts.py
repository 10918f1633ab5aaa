"""Run contexts of this version and of the one before it: who reads what the other wrote.

`golden/previous/assetflow-core-9d5f9f5.zip` is the core of the assetflow that wrote events into the context as a list
(version 1). It is stored, because a clone of this repository need not have its history.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.assets import Asset
from assetflow.core.codec import RunContext, event_to_json, run_context_from_json, run_context_to_json
from assetflow.core.events import AssetEvent, Origin, SourceFlowRun
from assetflow.errors import InvalidEvent
from tests.golden import agrees

PREVIOUS = Path(__file__).parents[1] / "golden" / "previous" / "assetflow-core-9d5f9f5.zip"
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

# Read contexts from the standard input; write what was understood, or the error.
READER = """
import json, sys
from assetflow.core import codec
from assetflow.core.codec import run_context_from_json, run_context_to_json
assert "9d5f9f5" in codec.__file__, codec.__file__
for line in sys.stdin:
    try:
        print(json.dumps(run_context_to_json(run_context_from_json(json.loads(line)))))
    except Exception as error:
        print(json.dumps([type(error).__name__, str(error)]))
"""


def read_by_the_previous_version(*contexts: dict[str, object], folder: Path) -> list[Any]:
    env = os.environ | {"PYTHONPATH": str(PREVIOUS)}
    lines = "\n".join(map(json.dumps, contexts))
    done = subprocess.run(
        [sys.executable, "-c", READER], cwd=folder, env=env, input=lines, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def version_1(events: list[dict[str, object]]) -> dict[str, object]:
    ours = {"version": 1, "consumer": "report/daily", "decision": str(NUMBER), "partition_key": "monday"}
    return {"assetflow": ours | {"events": events}}


def test_old_workers_and_new_ones(tmp_path: Path) -> None:
    """New workers read both forms. Old ones say `Update assetflow` of the new form, and read all that has no events."""
    old = version_1([event_to_json(EVENT)])
    new = run_context_to_json(WITH_EVENTS)
    without = [run_context_to_json(OF_A_TICK), run_context_to_json(IN_AN_ARTIFACT)]

    written_before, refused, *others = read_by_the_previous_version(old, new, *without, folder=tmp_path)

    assert written_before == old
    assert refused[0] == "InvalidEvent"
    assert refused[1].endswith("Update assetflow")
    assert others == without
    for context in (written_before, new):
        found = run_context_from_json(context)
        assert found is not None
        assert found == WITH_EVENTS
        assert found.events is not None
        assert event_to_json(found.events[0]) == event_to_json(EVENT)


@pytest.mark.parametrize("name", ["WITH_EVENTS", "OF_A_TICK", "IN_AN_ARTIFACT"])
def test_run_contexts_are_as_agreed(name: str) -> None:
    agrees(f"run_contexts/{name.lower()}", run_context_to_json(globals()[name]))


def test_events_are_one_ascii_text() -> None:
    ours: Any = run_context_to_json(WITH_EVENTS)["assetflow"]
    assert ours["version"] == 2
    assert ours["events"].isascii()
    assert json.loads(ours["events"]) == [event_to_json(EVENT)]


def test_what_an_old_evaluator_sent_is_read_whatever_is_in_it() -> None:
    poison = event_to_json(EVENT) | {"extra": {"n": 2**64, "f": "caf\udce9", "r": float("nan")}}
    found = run_context_from_json(version_1([poison]))
    assert found is not None
    assert found.events is not None
    assert found.events[0].extra["n"] == 2**64


@pytest.mark.parametrize("ours", [{"version": 3, "consumer": "x", "events": {"new": "form"}}, "text", [1]])
def test_a_later_form_says_what_to_do(ours: object) -> None:
    with pytest.raises(InvalidEvent, match="Update assetflow") as caught:
        run_context_from_json({"assetflow": ours})
    assert "the flow run's context" in str(caught.value)
