"""The demo's check: the ledger's decisions are what folding its recordings once more leads to, each with one run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import respx

from assetflow.core.wire import recording_to_json
from assetflow.ledger import Ledger, Reader
from assetflow.stack.calls import FlowRun, PrefectCalls
from assetflow.stack.demo import left_to_do
from assetflow.stack.summary import Story, deployed_now
from tests.ledger.making import NOW, A, B, deploy, update


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    """Updates of a, b, a; one consumer of `a`, one of `a & b`; each decision with its run."""
    place = tmp_path / "ledger.db"
    with Ledger.open(place) as ledger:
        deploy(ledger, A, "single/one")
        deploy(ledger, A & B, "both/one")
        for recording in (update(A), update(B), update(A)):
            ledger.writer.events.record([recording], NOW)
    with Reader.open(place) as reader:
        runs = [run_of(record.id) for record in reader.decisions.find()]
        yield Story.read(reader, runs, deployed_now(reader))


def run_of(decision: Any, state: str = "COMPLETED") -> FlowRun:
    at = datetime.now(UTC)
    return FlowRun(uuid4(), "a-run", uuid4(), state.capitalize(), state, decision, at, at, at)


def told(story: Story, consumer: str) -> dict[str, Any]:
    entries: Any = story.as_json()["consumers"]
    (entry,) = [entry for entry in entries if entry["consumer"] == consumer]
    return entry


def test_all_is_well(story: Story) -> None:
    assert story.as_json()["ok"] is True
    assert told(story, "single/one") == {
        "consumer": "single/one",
        "condition": str(A.name),
        "expected": 2,
        "decisions": 2,
        "runs": 2,
        "completed": 2,
        "ok": True,
    }
    assert told(story, "both/one")["expected"] == 1


@pytest.mark.parametrize("consumer", ["single/one", "both/one"])
def test_a_decision_is_missing(story: Story, consumer: str) -> None:
    first = next(each for each in story.decisions if each[0].consumer_name == consumer)
    found = replace(story, decisions=[each for each in story.decisions if each is not first])
    assert found.as_json()["ok"] is False
    assert told(found, consumer)["ok"] is False


def test_a_decision_too_many(story: Story) -> None:
    record, events = story.decisions[0]
    found = replace(story, decisions=[*story.decisions, (replace(record, id=uuid4()), events)])
    assert told(found, record.consumer_name)["ok"] is False


def test_decisions_in_another_order(story: Story) -> None:
    found = replace(story, decisions=story.decisions[::-1])
    assert told(found, "single/one")["ok"] is False


@pytest.mark.parametrize("runs", [0, 2])
def test_a_decision_without_a_run_or_with_two(story: Story, runs: int) -> None:
    decision = story.decisions[0][0]
    others = [run for run in story.runs if run.decision != decision.id]
    found = replace(story, runs=others + [run_of(decision.id) for _ in range(runs)])
    assert told(found, decision.consumer_name)["ok"] is False


def test_a_run_that_failed(story: Story) -> None:
    decision = story.decisions[0][0]
    runs = [run_of(run.decision, "FAILED") if run.decision == decision.id else run for run in story.runs]
    assert told(replace(story, runs=runs), decision.consumer_name)["ok"] is False


@respx.mock(base_url="http://127.0.0.1:9/api")
def test_a_damaged_artifact_is_waited_for_until_it_is_refused(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    damaged, good = uuid4(), update(A)
    artifacts = [{"id": str(damaged), "data": "{"}, {"id": str(uuid4()), "data": recording_to_json(good)}]
    respx_mock.post("/artifacts/filter").respond(json=artifacts)
    with Ledger.open(tmp_path / "ledger.db") as ledger, PrefectCalls("http://127.0.0.1:9/api") as calls:
        assert left_to_do([], calls, ledger.reader).startswith("the recordings of 2 tasks were not in the ledger")
        ledger.writer.events.record([good], NOW)
        ledger.writer.events.refuse({}, "not JSON", "2.2", "prefect", damaged, NOW)
        assert left_to_do([], calls, ledger.reader) == ""
