"""The events of a run, and the signature of a function whose parameters assetflow fills in."""

import pickle
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from prefect.utilities.callables import parameter_schema

from assetflow import Asset, AssetAlias, TriggeringAssetEvents, flow, task, triggering_asset_events
from assetflow.core.wire.run_context import RunContext
from tests.authoring.events import event

if TYPE_CHECKING:
    pass  # pyright: ignore[reportMissingImports]

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
    found = TriggeringAssetEvents(EVENTS)
    assert found[C] == []
    assert C not in found
    assert A in found
    assert AssetAlias("z") not in found


def test_events_can_be_sent_to_other_processes() -> None:
    found = TriggeringAssetEvents.of_run(RunContext(uuid4(), "flow/deployment", events=tuple(EVENTS)))
    assert pickle.loads(pickle.dumps(found)).all() == EVENTS


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
