"""The laws of Eager flows (8.5, 8.6, 8.16), over drawn scenarios."""

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assetflow.core.simulate import simulate

Json = dict[str, Any]

FEW = settings(max_examples=40, deadline=None)
SETTLED = {"advance": 100_000}

steps = st.lists(
    st.builds(lambda version: {"event": "s", "data_version": version}, st.sampled_from("123"))
    | st.builds(lambda seconds: {"advance": seconds}, st.sampled_from([0, 5, 30, 200])),
    max_size=12,
)
lengths = st.sampled_from([0, 10, 70, 300])


@st.composite
def diamonds(draw: st.DrawFn) -> Json:
    """Two flows on one source, and a third below both."""
    reads = {"a": ["s"], "b": draw(st.sampled_from([["s"], ["s", "a"]])), "c": ["a", "b"]}
    return {
        name: {"schedule": {"eager": {}}, "makes": [name], "reads": inputs, "takes": draw(lengths)}
        for name, inputs in reads.items()
    }


def simulated(consumers: Json, drawn: list[Json], *more: Json) -> Json:
    return simulate({"name": "x", "passes": "live", "consumers": consumers, "steps": [*drawn, *more]})


@FEW
@given(diamonds(), steps)
def test_in_the_end_everything_is_up_to_date(consumers: Json, drawn: list[Json]) -> None:
    found = simulated(consumers, drawn, {"event": "s"}, SETTLED, {"status": True})
    states = {uri: each["state"] for uri, each in found["answers"][0]["status"].items()}
    assert states == {"a": "fresh", "b": "fresh", "c": "fresh", "s": "source"}


@FEW
@given(diamonds(), steps)
def test_looking_changes_nothing(consumers: Json, drawn: list[Json]) -> None:
    plain = [step for step in drawn if "event" in step]
    looked = [each for step in plain for each in (step, {"advance": 0})]
    times = [
        [(run["consumer"], run["time"]) for run in simulated(consumers, each, SETTLED)["runs"]]
        for each in (plain, looked)
    ]
    assert sorted(times[0]) == sorted(times[1])


@FEW
@given(diamonds(), steps)
def test_one_run_at_a_time(consumers: Json, drawn: list[Json]) -> None:
    found = simulated(consumers, drawn, SETTLED)
    for name, spec in consumers.items():
        begins = sorted(_seconds(run["time"]) for run in found["runs"] if run["consumer"] == name)
        assert all(later - first >= spec["takes"] for first, later in pairwise(begins))


def _seconds(text: str) -> int:
    days, _, clock = text.removesuffix("Z").partition("T")
    hours, minutes, seconds = map(int, clock.split(":"))
    return int(days.split("-")[2]) * 86400 + hours * 3600 + minutes * 60 + seconds
