"""`triggering_asset_events`: lookups, order, values that callers may pass, and the events of a run."""

from __future__ import annotations

import copy
import pickle
from typing import Any
from uuid import uuid4

import pytest
from prefect.utilities.callables import parameter_schema

from assetflow import Asset, AssetAlias, TriggeringAssetEvents, flow, partition_key, task, triggering_asset_events
from assetflow.core.values.events import AssetEvent
from assetflow.core.wire.run_context import RunContext
from assetflow.errors import InvalidEvent
from tests.authoring.events import event

A, B, C = Asset("s3://b/a", name="a"), Asset("s3://b/b"), Asset("s3://b/c")
EVENTS = [event(1, A), event(2, B, "x"), event(3, A, "x", "y")]


def numbers(events: Any) -> list[object]:
    return [each.extra["number"] for each in events]


@pytest.mark.rule("7.1")
def test_lookups_by_asset_uri_reference_and_alias_are_oldest_first() -> None:
    found = TriggeringAssetEvents(EVENTS)
    assert numbers(found[A]) == numbers(found["S3://b/a"]) == numbers(found[Asset.ref(uri="s3://b/a")]) == [1, 3]
    assert numbers(found[Asset.ref(name="a")]) == [1, 3]
    assert numbers(found[AssetAlias("x")]) == [2, 3]
    assert numbers(found.all()) == [1, 2, 3]


def test_an_asset_that_did_not_trigger_the_run_has_no_events() -> None:
    found = TriggeringAssetEvents(EVENTS)
    assert found[C] == []
    assert C not in found
    assert A in found
    assert AssetAlias("z") not in found


def test_a_loop_gives_each_asset_and_alias_with_its_events() -> None:
    found = TriggeringAssetEvents(EVENTS)
    assert [(key, numbers(events)) for key, events in found.items()] == [
        (A, [1, 3]),
        (B, [2]),
        (AssetAlias("x"), [2, 3]),
        (AssetAlias("y"), [3]),
    ]


@pytest.mark.parametrize(
    "passed", [EVENTS, {A: [EVENTS[0], EVENTS[2]], "b": [EVENTS[1]]}, TriggeringAssetEvents(EVENTS)]
)
def test_callers_pass_events_or_a_mapping(passed: Any) -> None:
    assert sorted(map(str, numbers(TriggeringAssetEvents.of(passed).all()))) == ["1", "2", "3"]


def test_events_passed_under_an_alias_are_found_under_it() -> None:
    passed = TriggeringAssetEvents.of({AssetAlias("q"): [EVENTS[0]], A: [EVENTS[0]]})
    assert numbers(passed[AssetAlias("q")]) == [1]
    assert numbers(passed[A]) == [1]


@pytest.mark.parametrize("passed", ["text", [1], {A: "x"}, 3])
def test_values_that_are_not_events_are_refused(passed: Any) -> None:
    with pytest.raises(InvalidEvent, match="is not an event"):
        TriggeringAssetEvents.of(passed)


def test_outside_of_a_run_there_are_no_events_and_no_key() -> None:
    assert len(triggering_asset_events()) == 0
    assert partition_key() is None
    assert len(TriggeringAssetEvents.of_run(None)) == 0


def test_events_can_be_sent_to_other_processes() -> None:
    found = TriggeringAssetEvents.of_run(RunContext(uuid4(), "flow/deployment", events=tuple(EVENTS)))
    assert pickle.loads(pickle.dumps(found)).all() == EVENTS


def test_events_are_pickled_by_name_for_other_versions() -> None:
    event = EVENTS[0]
    state = event.__reduce_ex__(pickle.HIGHEST_PROTOCOL)[2]
    assert state == event.__getstate__()
    placed = event.in_ledger(5, event.occurred)
    found = AssetEvent.__new__(AssetEvent)
    found.__setstate__(placed.__getstate__())
    assert (found, found.asset, found.sequence, found.recorded) == (event, event.asset, 5, event.occurred)


def test_as_a_default_it_lets_flows_and_tasks_be_called_without_it() -> None:
    @flow(schedule=A)
    def report(
        extra: int = 0, triggering_asset_events: TriggeringAssetEvents = triggering_asset_events
    ) -> list[object]:
        return [extra, *numbers(triggering_asset_events.all())]

    @task
    def inner(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events) -> int:
        return len(triggering_asset_events)

    assert report.fn() == [0]
    assert report.fn(5, triggering_asset_events=TriggeringAssetEvents(EVENTS)) == [5, 1, 2, 3]
    assert inner.fn() == 0
    assert parameter_schema(report).properties["triggering_asset_events"].get("default") is None


def test_the_imported_name_is_a_mapping_of_the_run_around_it_and_can_be_pickled() -> None:
    assert triggering_asset_events.all() == triggering_asset_events[A] == list(triggering_asset_events) == []
    assert A not in triggering_asset_events
    assert type(triggering_asset_events()) is TriggeringAssetEvents
    assert pickle.loads(pickle.dumps(triggering_asset_events)) is triggering_asset_events
    assert copy.deepcopy(triggering_asset_events) is triggering_asset_events
