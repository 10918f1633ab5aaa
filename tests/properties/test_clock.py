"""Drawn scenarios of chapter 9: a naive reading of the rules gives the same answer, and nobody's looking changes it."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assetflow.core.rules import clock
from assetflow.core.rules.state.state import Decisions, Receipts
from assetflow.core.rules.waits import TimedQueue
from assetflow.core.simulate import run, simulate
from assetflow.core.simulate.steps import Step
from assetflow.core.simulate.world import World
from tests.properties.drawn import text
from tests.properties.drawn_time import ASSETS, scenario
from tests.properties.naive_time import NaiveTime, minute_of

Json = dict[str, Any]
MINUTE = timedelta(minutes=1)
_WHEN = ("expired", "skipped")


def simulated(drawn: Json) -> Json:
    answer = json.loads(json.dumps(simulate(drawn)))
    assert "errors" not in answer
    runs = [
        (
            row["at"],
            row["consumer"],
            row.get("partition_key"),
            row.get("time"),
            bool(row.get("deadline")),
            [(each["asset"], each["step"]) for each in row["events"]],
        )
        for row in answer["runs"]
    ]
    missed = [
        (row["at"], row["consumer"], row.get("partition_key"), row["due"], row["then"], row["queued"])
        for row in answer.get("missed", [])
    ]
    receipts = [
        (
            row["event"],
            row["consumer"],
            row.get("partition_key"),
            row["status"],
            row["at"] if row["status"] in _WHEN else None,
        )
        for row in answer["receipts"]
    ]
    return shaped(runs, missed, receipts)


def naive(drawn: Json) -> Json:
    answer = NaiveTime(drawn).answer()
    runs = [
        (row["at"], row["consumer"], row["key"], row["time"], row["overdue"], row["events"]) for row in answer["runs"]
    ]
    missed = [
        (row["at"], row["consumer"], row["key"], row["due"], row["then"], row["queued"]) for row in answer["missed"]
    ]
    receipts = [
        (row["event"], row["consumer"], row["key"], row["status"], row["until"] if row["status"] in _WHEN else None)
        for row in answer["receipts"]
    ]
    return shaped(runs, missed, receipts)


def shaped(*tables: Any) -> Json:
    """Return rows in one order, their times as minutes."""

    def minutes(value: Any) -> Any:
        return minute_of(value) if isinstance(value, str) and value.endswith("Z") else value

    rows = [[tuple(map(minutes, row)) for row in table] for table in tables]
    return dict(zip(("runs", "missed", "receipts"), (sorted(each, key=str) for each in rows), strict=True))


@pytest.mark.rule("9.1", "9.2", "9.5", "9.7", "9.8", "9.9", "9.10", "9.11", "9.12", "9.13")
@pytest.mark.parametrize("number", range(60))
def test_a_naive_reading_of_chapter_9_gives_the_same_answer(number: int) -> None:
    drawn = scenario(number)
    assert simulated(drawn) == naive(drawn)


def outcome(drawn: Json) -> Json:
    """Return what a scenario leads to, with the places of its recordings instead of those of its steps."""
    recordings = [number for number, step in enumerate(drawn["steps"]) if "event" in step or "task" in step]
    found = simulated(drawn)
    runs = [(*row, [(uri, recordings.index(step)) for uri, step in events]) for *row, events in found["runs"]]
    return found | {"runs": sorted(runs, key=str)}


def looked_at(number: int) -> tuple[Json, Json]:
    """Return a scenario with an update where a wait ends, also with looks at random moments and before that update."""
    drawn, draw = scenario(number), Random(number)
    runs: Any = simulate(drawn)["runs"]
    ends = sorted({row["at"] for row in runs}) or [drawn["steps"][0]["at"]]
    update = {"event": draw.choice(ASSETS), "at": draw.choice(ends)}
    place = sum(step["at"] < update["at"] for step in drawn["steps"])
    before, after = drawn["steps"][:place], drawn["steps"][place:]
    looked = [*before, {"tick": True, "at": update["at"]}, update, *after]
    for _ in range(5):
        place = draw.randrange(1, len(looked))
        first, last = (datetime.fromisoformat(looked[each]["at"]) for each in (place - 1, place))
        at = text(first + draw.randint(0, (last - first) // MINUTE) * MINUTE)
        looked.insert(place, draw.choice([{"tick": True}, {"advance": 0}]) | {"at": at})
    return drawn | {"steps": [*before, update, *after]}, drawn | {"steps": looked}


def slept(number: int) -> tuple[Json, Json]:
    """Return a scenario, also with an evaluator that is down while some updates come."""
    drawn, draw = scenario(number), Random(number)
    steps: list[Json] = list(drawn["steps"])
    stretches = [
        (first, last)
        for first in range(1, len(steps))
        for last in range(first, len(steps))
        if all({"event", "task", "advance"} & step.keys() for step in steps[first : last + 1])
    ]
    first, last = draw.choice(stretches)
    steps.insert(last + 1, {"start": True, "at": steps[last]["at"]})
    steps.insert(first, {"stop": True, "at": steps[first - 1]["at"]})
    return drawn, drawn | {"steps": steps}


@pytest.mark.rule("9.6")
@pytest.mark.parametrize("lived", [looked_at, slept])
@settings(max_examples=40, deadline=None)
@given(number=st.integers(0, 1_000_000))
def test_nobodys_looking_and_no_downtime_changes_anything(lived: Any, number: int) -> None:
    plain, other = lived(number)
    assert outcome(plain) == outcome(other)


def agrees(number: int) -> bool:
    return simulated(scenario(number)) == naive(scenario(number))


def lives_alike(lived: Callable[[int], tuple[Json, Json]]) -> Callable[[int], bool]:
    return lambda number: len({json.dumps(outcome(each)) for each in lived(number)}) == 1


def clock_oversleeps(patch: pytest.MonkeyPatch) -> None:
    due_at = clock.due_at

    def late(*given: Any) -> datetime | None:
        due = due_at(*given)
        return None if due is None else due + 3 * MINUTE

    patch.setattr(clock, "due_at", late)


def time_of_processing(patch: pytest.MonkeyPatch) -> None:
    """What came during a downtime counts a minute later."""
    carry_out: Callable[[World, Step, int, int], None] = run._carry_out

    def late(world: World, step: Step, number: int, pass_number: int) -> None:
        if number != pass_number:
            world.now += MINUTE
        carry_out(world, step, number, pass_number)

    patch.setattr(run, "_carry_out", late)


def broken(owner: type, name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(owner, name, value)


BROKEN: list[tuple[Callable[[pytest.MonkeyPatch], None], Callable[[int], bool], int]] = [
    (broken(Receipts, "consume", lambda *_: None), agrees, 0),
    (broken(TimedQueue, "_waits_for_more", lambda _: {}), agrees, 2),
    (broken(TimedQueue, "cool_at", None), agrees, 3),
    (broken(Decisions, "is_busy", lambda *_: False), agrees, 4),
    (broken(TimedQueue, "is_open", True), agrees, 4),
    (clock_oversleeps, lives_alike(looked_at), 18),
    # A wait is over with the first recording of its last instant.
    (broken(TimedQueue, "_is_over", lambda queue, moment: moment <= queue.now), lives_alike(looked_at), 8),
    (time_of_processing, lives_alike(slept), 0),
]


@pytest.mark.parametrize(("breaks", "law", "number"), BROKEN)
def test_a_broken_copy_is_noticed(
    breaks: Callable[[pytest.MonkeyPatch], None],
    law: Callable[[int], bool],
    number: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert law(number)
    breaks(monkeypatch)
    assert not law(number)
