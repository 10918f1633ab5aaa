"""Eager flows in the demo's check: their decisions follow from updates, ends of runs and deploys, folded once more."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import pytest

from assetflow.core.freshness.records import RunState
from assetflow.core.values.consumers import Decision
from assetflow.ledger import Ledger
from assetflow.stack.calls import FlowRun
from assetflow.stack.summary import DeployedConsumer, deployed_now, fold_again
from tests.ledger.write.test_kept import BOARD, CORE, LEFT, RAW, RIGHT, Place, kept, only


class Walk(Place):
    """A ledger whose runs Prefect knows."""

    runs: list[FlowRun]

    def ends(self, decision: Decision, outcome: RunState = "completed") -> Sequence[Decision]:
        at = self.later()
        ended = FlowRun(uuid4(), "run", None, outcome.capitalize(), outcome.upper(), decision.id, at, None, at)
        self.runs.append(ended)
        return self.end(decision, outcome)

    def folded(self, deployed: Sequence[DeployedConsumer]) -> list[Decision]:
        return fold_again(self.ledger.reader, deployed, self.runs)

    def decided(self) -> list[object]:
        return [each.id for each in reversed(self.ledger.reader.decisions.find(limit=100))]


@pytest.fixture
def walk(ledger: Ledger) -> Walk:
    found = Walk(ledger)
    found.runs = []
    return found


MAKES = {"left": LEFT, "right": RIGHT, "board": BOARD, "core": CORE}


def drive(walk: Walk, decisions: Sequence[Decision], *, fails: str = "", code: str = "1") -> None:
    """Let runs end, and those that follow from them; each has read what was there when it began."""
    todo = list(decisions)
    while todo:
        decision = todo.pop(0)
        (name,) = walk.names([decision])
        place = walk.ledger.reader.events.last_sequence()
        if name == fails:
            todo += walk.ends(decision, "failed")
            continue
        pins = dict.fromkeys((LEFT.uri, RIGHT.uri) if name == "board" else (RAW.uri,), place)
        todo += walk.make(name, decision, MAKES[name], pins=pins, code="" if name == "board" else code)
        todo += walk.ends(decision)


def test_a_diamond_with_a_failure_and_a_bugfix(walk: Walk) -> None:
    for name, makes in (("left", LEFT), ("right", RIGHT)):
        walk.deploy(name, kept([RAW], [makes], code="1"))
    walk.deploy("board", kept([LEFT, RIGHT], [BOARD]))
    deployed = deployed_now(walk.ledger.reader)
    drive(walk, walk.update(RAW), fails="right")
    drive(walk, walk.update(RAW))
    drive(walk, walk.update(RAW))
    bugfix = walk.deploy("left", kept([RAW], [LEFT], code="2"))
    deployed += deployed_now(walk.ledger.reader, deployed)
    drive(walk, bugfix, code="2")

    assert len(deployed) == 4
    assert [each.id for each in walk.folded(deployed)] == walk.decided()
    assert len(walk.decided()) >= 10


def test_what_is_left_out_is_missed(walk: Walk) -> None:
    walk.deploy("core", kept([RAW], [CORE]))
    deployed = deployed_now(walk.ledger.reader)
    first = only(walk.update(RAW))
    walk.update(RAW)
    walk.make("core", first, CORE, pins={RAW.uri: 1})
    walk.ends(first)

    assert len(walk.folded(deployed)) == len(walk.decided()) == 2
    walk.runs.clear()
    assert len(walk.folded(deployed)) == 1
    assert walk.folded([]) == []
