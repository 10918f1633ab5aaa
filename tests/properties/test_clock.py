"""The laws of the clock (9.3 to 9.14), over drawn scenarios: nothing is lost, and nobody's looking changes anything."""

import json
from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from assetflow.core.simulate import simulate

Json = dict[str, Any]

MANY = settings(max_examples=60)
START = datetime.fromisoformat("2026-01-01T00:30:00+00:00")
END = timedelta(days=1)
MINUTE = 60
ASSETS = ["a", "b", "c"]
SINGLE: list[Any] = ["a", {"any": ["a", "b", "c"]}]
SEVERAL: list[Any] = [
    {"all": ["a", "b"]},
    {"times": {"n": 2, "of": "a"}},
    {"at_least": {"n": 2, "of": ASSETS}},
    {"within": {"seconds": 40 * MINUTE, "of": {"all": ["a", "b"]}}},
    {"since": {"cron": "0 */3 * * *", "of": {"all": ["a", "b"]}}},
    {"any": ["c", {"within": {"seconds": 25 * MINUTE, "of": {"times": {"n": 2, "of": "a"}}}}]},
]
spans = st.sampled_from([5 * MINUTE, 20 * MINUTE, 60 * MINUTE])


@st.composite
def consumers(draw: st.DrawFn) -> Json:
    single = draw(st.booleans())
    schedule: Any = draw(st.sampled_from(SINGLE if single else SEVERAL))
    if draw(st.booleans()):
        schedule = {"partitioned": {"assets": schedule}}
    if draw(st.booleans()):
        until = draw(st.sampled_from([None, "0 1-23/2 * * *", "30 */2 * * *"]))
        schedule = {"asset_and_time": {"cron": "0 */2 * * *", "until": until, "assets": schedule}}
    found: Json = {"schedule": schedule, "while_paused": draw(st.sampled_from(["drop", "keep"]))}
    found["coalesce"] = draw(st.sampled_from([False, False, True]))
    found["cooldown"] = draw(st.none() | spans)
    found["debounce"] = draw(st.none() | st.sampled_from([5 * MINUTE, 20 * MINUTE]))
    found["min_events"] = draw(st.none() | st.integers(1, 3))
    if found["debounce"] or found["min_events"]:
        found["max_wait"] = draw(st.none() | st.sampled_from([20 * MINUTE, 60 * MINUTE]))
    if single:
        found["max_events"] = draw(st.none() | st.integers(found["min_events"] or 1, 4))
    if draw(st.booleans()):
        found |= {"deadline": draw(spans), "on_deadline": draw(st.sampled_from(["alert", "run", "skip"]))}
    return found


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


updates = st.builds(
    lambda asset, key: {"event": asset} | ({"partition_key": key} if key else {}),
    st.sampled_from(ASSETS),
    st.sampled_from([None, None, "k", "l"]),
)
operators = st.builds(
    lambda kind, name: {kind: name}, st.sampled_from(["pause", "resume", "finish", "finish"]), st.sampled_from("xy")
)


@st.composite
def scenarios(draw: st.DrawFn) -> Json:
    steps, now = [], START
    for step in draw(st.lists(updates | updates | operators, min_size=1, max_size=14)):
        now += timedelta(minutes=draw(st.sampled_from([0, 0, 1, 5, 10, 20, 25, 30, 60, 90])))
        steps.append(step | {"at": text(now)})
    steps.append({"advance": 0, "at": text(now + END)})
    drawn = {"x": draw(consumers()), "y": draw(consumers())}
    return {
        "name": "drawn",
        "passes": "timed",
        "receipts": True,
        "start": text(START),
        "consumers": drawn,
        "steps": steps,
    }


def answer_of(scenario: Json) -> Json:
    answer: Json = json.loads(json.dumps(simulate(scenario)))
    assert "errors" not in answer
    return answer


def without_steps(scenario: Json, answer: Json) -> Json:
    """Return an answer with the places of events in the ledger, and without the steps in which something happened."""
    places = places_of(scenario)
    found = {part: [dict(row) for row in answer.get(part, [])] for part in ("runs", "missed", "receipts")}
    for row in (row for rows in found.values() for row in rows):
        row.pop("step", None)
    for run in found["runs"]:
        run["events"] = [places[event["step"]] for event in run["events"]]
    found["runs"].sort(key=lambda run: (run["at"], run["consumer"], run.get("partition_key", ""), run["events"]))
    return found


def places_of(scenario: Json) -> dict[int, int]:
    steps = [number for number, step in enumerate(scenario["steps"]) if "event" in step]
    return {step: place for place, step in enumerate(steps, 1)}


@pytest.mark.rule("9.13")
@MANY
@given(scenarios())
def test_each_event_has_one_receipt_and_is_in_one_run_at_most(scenario: Json) -> None:
    answer, places = answer_of(scenario), places_of(scenario)
    receipts = Counter((r["event"], r["consumer"], r.get("partition_key")) for r in answer["receipts"])
    assert set(receipts.values()) <= {1}
    consumed = Counter(
        (places[event["step"]], run["consumer"], run.get("partition_key"))
        for run in answer["runs"]
        for event in run["events"]
    )
    told = [r for r in answer["receipts"] if r["status"] == "consumed"]
    assert consumed == Counter((r["event"], r["consumer"], r.get("partition_key")) for r in told)
    assert {r["event"] for r in answer["receipts"]} == set(places.values())
    queued = [r for r in answer["receipts"] if r["status"] == "queued"]
    left = [*answer["queued"].values(), *(q for keys in answer["pending_partitions"].values() for q in keys.values())]
    assert len(queued) == sum(map(len, left))


@pytest.mark.rule("9.6")
@MANY
@given(scenarios(), st.data())
def test_looking_at_random_moments_changes_nothing(scenario: Json, data: st.DataObject) -> None:
    steps = list(scenario["steps"])
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(1, len(steps) - 1))
        earliest, latest = (datetime.fromisoformat(steps[number]["at"]) for number in (place - 1, place))
        minutes = data.draw(st.integers(0, int((latest - earliest) / timedelta(minutes=1))))
        at = text(earliest + timedelta(minutes=minutes))
        steps.insert(place, data.draw(st.sampled_from([{"tick": True}, {"advance": 0}])) | {"at": at})
    looked = scenario | {"steps": steps}
    assert without_steps(looked, answer_of(looked)) == without_steps(scenario, answer_of(scenario))


@pytest.mark.rule("9.6")
@settings(MANY, max_examples=25)
@given(scenarios(), st.data())
def test_looking_where_a_wait_ends_changes_nothing_for_what_comes_at_that_instant(
    scenario: Json, data: st.DataObject
) -> None:
    moments = sorted({run["at"] for run in answer_of(scenario)["runs"]})
    assume(moments)
    at = data.draw(st.sampled_from(moments))
    steps: list[Json] = scenario["steps"]
    place = sum(step["at"] < at for step in steps)
    update = data.draw(updates) | {"at": at}
    plain = scenario | {"steps": [*steps[:place], update, *steps[place:]]}
    looked = scenario | {"steps": [*steps[:place], {"tick": True, "at": at}, update, *steps[place:]]}
    assert without_steps(looked, answer_of(looked)) == without_steps(plain, answer_of(plain))


@pytest.mark.rule("9.6")
@MANY
@given(scenarios(), st.data())
def test_an_evaluator_that_slept_decides_as_one_that_did_not(scenario: Json, data: st.DataObject) -> None:
    steps = list(scenario["steps"])
    stretches = [
        (first, last)
        for first in range(1, len(steps))
        for last in range(first, len(steps))
        if all("event" in step or "advance" in step for step in steps[first : last + 1])
    ]
    first, last = data.draw(st.sampled_from(stretches))
    steps.insert(last + 1, {"start": True, "at": steps[last]["at"]})
    steps.insert(first, {"stop": True, "at": steps[first - 1]["at"]})
    slept = scenario | {"steps": steps}
    assert without_steps(slept, answer_of(slept)) == without_steps(scenario, answer_of(scenario))


def runs_of(scenario: Json, name: str) -> dict[str, list[Json]]:
    """Return the runs of a consumer by key, each with its time and those of its events, in the order of decisions."""
    times = [datetime.fromisoformat(step["at"]) for step in scenario["steps"]]
    found: dict[str, list[Json]] = {}
    for run in answer_of(scenario)["runs"]:
        if run["consumer"] == name:
            events = sorted(times[event["step"]] for event in run["events"])
            at = datetime.fromisoformat(run["at"])
            found.setdefault(run.get("partition_key", ""), []).append(run | {"at": at, "events": events})
    return found


@pytest.mark.rule("9.9", "9.10", "9.11", "9.12")
@MANY
@given(scenarios())
def test_the_bounds_of_intake_hold(scenario: Json) -> None:
    for name, options in scenario["consumers"].items():
        for runs in runs_of(scenario, name).values():
            for run in runs:
                check_amount(options, run)
            cooldown = timedelta(seconds=options["cooldown"] or 0)
            assert all(later["at"] - earlier["at"] >= cooldown for earlier, later in pairwise(runs))


def check_amount(options: Json, run: Json) -> None:
    assert len(run["events"]) <= (options.get("max_events") or 99)
    longest = options.get("max_wait")
    waited = longest is not None and run["at"] - run["events"][0] >= timedelta(seconds=longest)
    if "deadline" not in run and not waited:
        assert len(run["events"]) >= (options["min_events"] or 1)
        assert run["at"] - run["events"][-1] >= timedelta(seconds=options["debounce"] or 0)


@pytest.mark.rule("9.12")
@MANY
@given(scenarios())
def test_a_run_waits_for_the_end_of_the_one_before(scenario: Json) -> None:
    for name, options in scenario["consumers"].items():
        ends = [datetime.fromisoformat(step["at"]) for step in scenario["steps"] if step.get("finish") == name]
        for runs in runs_of(scenario, name).values() if options["coalesce"] else ():
            for earlier, later in pairwise(runs):
                assert any(earlier["at"] <= end <= later["at"] for end in ends)


@pytest.mark.rule("9.7")
@MANY
@given(scenarios())
def test_a_schedule_runs_while_it_is_open_and_once_for_each_opening(scenario: Json) -> None:
    for name, options in scenario["consumers"].items():
        opening = options["schedule"].get("asset_and_time") if isinstance(options["schedule"], dict) else None
        if opening is None:
            continue
        for runs in runs_of(scenario, name).values():
            for run in runs:
                check_opening(opening["until"], run)
            # For a missed deadline with "run", the opening counts as open also after its decision (9.8).
            ordinary = [run for run in runs if "time" in run and "deadline" not in run]
            once = {(run["time"], run["at"] if options.get("max_events") else None) for run in ordinary}
            # With a limit, one pass makes several decisions, and then the schedule is closed.
            assert len({time for time, _ in once}) == len(once)
            if not options.get("max_events"):
                assert len(once) == len(ordinary)


def check_opening(until: str | None, run: Json) -> None:
    if "deadline" in run:
        return
    assert "time" in run
    opened = datetime.fromisoformat(run["time"])
    assert (opened.hour % 2, opened.minute, opened.second) == (0, 0, 0)
    open_for = {None: END * 2, "0 1-23/2 * * *": timedelta(hours=1), "30 */2 * * *": timedelta(minutes=30)}[until]
    assert timedelta() <= run["at"] - opened < open_for
