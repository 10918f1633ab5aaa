"""Drawn scenarios of chapter 8: the simulator and a naive reading of the rules give one answer."""

import json
from collections.abc import Callable
from datetime import timedelta
from math import inf
from typing import Any

import pytest

from assetflow.core.freshness import deploying, judging, reads, recording
from assetflow.core.freshness.data_time import DataTimes
from assetflow.core.freshness.demands import Demands
from assetflow.core.freshness.graph import DataGraph, FlowNode
from assetflow.core.freshness.judging import Upcoming
from assetflow.core.freshness.records import Item
from assetflow.core.simulate import simulate
from tests.properties.drawn_freshness import scenario
from tests.properties.naive_freshness import NaiveFreshness
from tests.properties.naive_items import second_of

Json = dict[str, Any]


def simulated_freshness(drawn: Json) -> Json:
    answer = json.loads(json.dumps(simulate(drawn)))
    assert "errors" not in answer
    answers = {kind: of for each in answer["answers"] for kind, of in each.items()}
    runs = [(second_of(row["at"]), *_target(row), _causes(row["because"])) for row in answer["runs"]]
    statuses = {
        uri: (row.get("counts", row.get("state")), row["outdated"])
        for uri, row in answers["status"].items()
        if uri not in ("r", "s")
    }
    data_times = {uri: _moment(row["data_time"]) for uri, row in answers["freshness"].items()}
    plan = {_target(row): row["verdict"] for row in answers["plan"]}
    told = [(second_of(row["time"]), row["asset"], row["state"]) for row in answer.get("freshness_events", [])]
    return {
        "runs": sorted(runs, key=str),
        "statuses": statuses,
        "data_times": data_times,
        "plan": plan,
        "told": sorted(told),
    }


def _target(row: Json) -> tuple[str, str | None]:
    return row["consumer"], row.get("partition_key")


def _moment(text: str | None) -> float | None:
    return inf if text == "current" else None if text is None else second_of(text)


def _causes(rows: list[Json]) -> list[str]:
    return sorted({f"{row['kind']} {row.get('asset')} {row.get('partition_key')}" for row in rows})


def naive_freshness(drawn: Json) -> Json:
    answer = NaiveFreshness(drawn).answer()
    runs = [
        (row["at"], row["consumer"], row["key"], sorted(f"{kind} {uri} {key}" for kind, uri, key in row["because"]))
        for row in answer["runs"]
    ]
    return answer | {"runs": sorted(runs, key=str), "told": sorted(answer["told"])}


# The first two of these add or remove partitions and inputs while a run is going on. In the last one, a flow with
# partitions makes an update without a key, and a Lazy flow waits for its keys.
@pytest.mark.rule("8.4", "8.6", "8.7", "8.9", "8.12", "8.13", "8.14", "8.15", "8.16")
@pytest.mark.parametrize("number", [*range(40), 1327, 1479, 4551])
def test_a_naive_reading_of_chapter_8_gives_the_same_answer(number: int) -> None:
    drawn = scenario(number)
    assert simulated_freshness(drawn) == naive_freshness(drawn)


Break = Callable[[pytest.MonkeyPatch], None]


def policies_pull_their_makers_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Demands, "_pulled", lambda _, demand: [demand.maker.id])


def flows_take_no_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Demands, "expected", lambda *_: timedelta())


def failures_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recording, "_note", lambda *_, **__: None)


def the_newest_key_is_as_old_as_the_asset(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DataTimes, "_newest", lambda times, uri: times._updates.newest_of(uri))


def an_item_without_a_key_starts_runs(patch: pytest.MonkeyPatch) -> None:
    def starts(node: FlowNode, item: Item) -> bool:
        return item.uri in node.starts

    patch.setattr(judging, "starts_runs", starts)
    patch.setattr(reads, "starts_runs", starts)


def all_keys_run_after_a_deploy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deploying, "_waive", lambda *_: None)


def single_keys_are_waited_for(patch: pytest.MonkeyPatch) -> None:
    """Let a target of a partitioned flow wait for a key that belongs to every target."""
    read = Upcoming._reads
    patch.setattr(Upcoming, "_reads", lambda *given: given[1].is_partitioned or read(*given))


def only_present_inputs_count(patch: pytest.MonkeyPatch) -> None:
    """Let what a flow read before a redeploy be forgotten."""
    patch.setattr(DataGraph, "add_earlier_inputs", lambda *_: [])


BROKEN: list[tuple[Break, int]] = [
    (policies_pull_their_makers_alone, 11),
    (flows_take_no_time, 3),
    (failures_are_forgotten, 15),
    (the_newest_key_is_as_old_as_the_asset, 23),
    (an_item_without_a_key_starts_runs, 0),
    (all_keys_run_after_a_deploy, 24),
    (single_keys_are_waited_for, 14),
    (only_present_inputs_count, 489),
]


@pytest.mark.parametrize(("broken", "number"), BROKEN, ids=[each.__name__ for each, _ in BROKEN])
def test_a_broken_copy_differs(broken: Break, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = scenario(number)
    expected = naive_freshness(drawn)
    assert simulated_freshness(drawn) == expected
    broken(monkeypatch)
    assert simulated_freshness(drawn) != expected
