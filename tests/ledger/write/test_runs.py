"""Runs of Eager flows: by hand, with the times that Prefect gives, and as the clock decides. Contract 8.6."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from assetflow.core.rules.ended_runs import RunEnd, RunGoingOn
from assetflow.core.values.consumers import Decision
from assetflow.core.values.keeping import Output
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.wire import FlowDeclaration
from assetflow.ledger import Ledger
from tests.ledger.write.test_kept import BOARD, CORE, RAW, Place, kept

FAILED, COMPLETED = RunEnd("Failed", "failed"), RunEnd("Completed", "completed")


@pytest.fixture
def place(sqlite_ledger: Ledger) -> Place:
    found = Place(sqlite_ledger)
    found.deploy("core", kept([RAW], [CORE]))
    return found


def by_hand(place: Place, name: str = "core", **given: object) -> RunGoingOn:
    run = RunGoingOn(uuid4(), place.consumers[name].deployment_id, None, None, place.later(), by_time=False)
    return run._replace(**given)


def end(place: Place, run: RunGoingOn, how: RunEnd = COMPLETED) -> list[str]:
    made = place.ledger.writer.runs.ended(run.run, how, place.later())
    assert made is not None
    return place.names(made)


def launch(place: Place, decision: Decision) -> UUID:
    run = uuid4()
    place.ledger.writer.decisions.launched(decision.id, run, place.later())
    return run


def what_happens(place: Place, steps: str) -> list[Decision]:
    """Let things happen to a run that an update of raw data started; return what the end of the run asks for."""
    (made,) = place.update(RAW)
    run = launch(place, made)
    happens: dict[str, Callable[[], object]] = {
        "update": lambda: place.update(RAW),
        "deploy": lambda: place.deploy("core", kept([RAW], [CORE], code="2")),
        "start": lambda: place.ledger.writer.runs.began(run, place.later(), place.now),
        "late start": lambda: place.ledger.writer.runs.began(run, place.now - timedelta(seconds=0.5), place.later()),
        "early start": lambda: place.ledger.writer.runs.began(run, place.now + timedelta(hours=1), place.later()),
        "make": lambda: place.make("core", made, CORE, run=run),
        "make of the first": lambda: place.make("core", made, CORE, pins={RAW.uri: 1}, run=run),
        "make with its start": lambda: place.make("core", made, CORE, run=run, started=place.later()),
    }
    *before, end = steps.split(", ")
    for step in before:
        happens[step]()
    return place.end(made, "failed" if end == "fail" else "completed")


@pytest.mark.parametrize(
    ("steps", "asked"),
    [
        # A run that never began has tried what was there when it was asked for.
        ("update, fail", ["missing"]),
        ("update, start, fail", []),
        ("start, update, fail", ["missing"]),
        # The start is heard of after an update that came half a second later.
        ("update, late start, fail", ["missing"]),
        # The clock of the run goes ahead: its start is not after the moment at which it is heard.
        ("early start, update, fail", ["missing"]),
        # What a task has not read is not tried, whatever the clocks say.
        ("update, start, make of the first, end", ["data"]),
        ("update, make of the first, start, end", ["data"]),
        # An update tells of the start of its run if nobody has before.
        ("update, make with its start, update, start, end", ["data"]),
        # A task that cannot ask has read what was there when its run started.
        ("update, start, make, end", []),
        ("deploy, start, fail", []),
        ("deploy, start, make, end", ["code"]),
    ],
)
@pytest.mark.rule("8.2", "8.6")
def test_what_came_before_the_start_of_a_run_is_tried_by_it(place: Place, steps: str, asked: list[str]) -> None:
    assert [each.kind for decision in what_happens(place, steps) for each in decision.because] == asked


@pytest.mark.parametrize("by", ["hand", "an event"])
def test_8_6_the_first_reader_waits_for_the_run_of_its_maker_that_goes_on(sqlite_ledger: Ledger, by: str) -> None:
    """Nothing was compared before, so that the ledger has not followed the run."""
    place = Place(sqlite_ledger)
    maker = FlowDeclaration(ConsumerOptions(Schedule(RAW)), (CORE,), (RAW,), (Output(CORE.token, (RAW.token,)),))
    place.deploy("core", maker)
    place.update(CORE)
    run = by_hand(place)
    if by == "an event":
        (decision,) = place.update(RAW)
        run = by_hand(place, run=launch(place, decision), decision=decision.id, began=place.later())
    assert place.deploy("board", kept([CORE], [BOARD]), going_on=[run]) == []
    if by == "hand":
        assert end(place, run) == ["board"]
    else:
        assert place.names(place.end(decision)) == ["board"]
