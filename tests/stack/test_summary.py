"""The demo's check and tables: decisions are those of its recordings folded once more, each with one run."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from assetflow.ledger import Ledger, Reader
from assetflow.stack.calls import FlowRun
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
    return FlowRun(uuid4(), "a-run", uuid4(), state.capitalize(), state, at, at, at, decision=decision)


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


def without(story: Story, consumer: str) -> Story:
    first = next(each for each in story.decisions if each[0].consumer_name == consumer)
    return replace(story, decisions=[each for each in story.decisions if each is not first])


def with_runs(story: Story, *states: str) -> Story:
    """Let the first decision have runs in these states."""
    first = story.decisions[0][0].id
    others = [run for run in story.runs if run.decision != first]
    return replace(story, runs=others + [run_of(first, state) for state in states])


def one_more(story: Story) -> Story:
    record, events = story.decisions[0]
    return replace(story, decisions=[*story.decisions, (replace(record, id=uuid4()), events)])


WRONG: dict[str, Callable[[Story], Story]] = {
    "a decision of one asset is missing": lambda story: without(story, "single/one"),
    "a decision of two is missing": lambda story: without(story, "both/one"),
    "a decision too many": one_more,
    "another order": lambda story: replace(story, decisions=story.decisions[::-1]),
    "no run": with_runs,
    "two runs": lambda story: with_runs(story, "COMPLETED", "COMPLETED"),
    "a run that failed": lambda story: with_runs(story, "FAILED"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told(story: Story, name: str) -> None:
    found: Any = WRONG[name](story).as_json()
    assert (found["ok"], [each["ok"] for each in found["consumers"]].count(False)) == (False, 1)
