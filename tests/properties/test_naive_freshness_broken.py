"""Drawn scenarios of chapter 8 are seen to differ from their naive reading with a broken copy of a rule."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from assetflow.core.freshness import deploying, judging, reads, recording
from assetflow.core.freshness.data_time import DataTimes
from assetflow.core.freshness.demands import Demands
from assetflow.core.freshness.graph import DataGraph, FlowNode
from assetflow.core.freshness.judging import Upcoming
from assetflow.core.freshness.records import Item
from tests.properties.drawn_freshness import scenario
from tests.properties.test_naive_freshness import naive, simulated

Break = Callable[[pytest.MonkeyPatch], None]


def policies_pull_their_makers_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Demands, "_pulled", lambda _, demand: [demand.maker.id])


def flows_take_no_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Demands, "expected", lambda *_: timedelta())


def failures_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Let a run that failed for good be asked for again without a pause."""
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
    expected = naive(drawn)
    assert simulated(drawn) == expected

    broken(monkeypatch)

    assert simulated(drawn) != expected
