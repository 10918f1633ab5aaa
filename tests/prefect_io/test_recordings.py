"""What goes to Prefect and what comes back: exact bodies, round trips, updates of outsiders, hostile text."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceFlowRun, SourceTaskRun
from assetflow.core.wire.events import event_to_json
from assetflow.errors import InvalidAsset, InvalidEvent
from assetflow.prefect_io.recordings import (
    describe_recording,
    part_of_recording,
    recording_from_artifact,
    recording_from_prefect_event,
    recording_to_artifact,
    recording_to_prefect_events,
)
from tests.golden import agrees

TASK_RUN = UUID("00000000-0000-4000-8000-000000000001")
FLOW_RUN = UUID("00000000-0000-4000-8000-000000000002")
FLOW = UUID("00000000-0000-4000-8000-000000000003")
DEPLOYMENT = UUID("00000000-0000-4000-8000-000000000004")


def event(number: int = 5, **changes: Any) -> AssetEvent:
    values: dict[str, Any] = {
        "id": UUID(int=number),
        "asset": Asset("s3://shop/orders", name="orders", group="shop", extra={"team": "sales"}),
        "occurred": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "origin": Origin(
            "task",
            task_run=SourceTaskRun(TASK_RUN, "produce-1a2"),
            flow_run=SourceFlowRun(
                FLOW_RUN, "brave-fox", FLOW, "producer", DEPLOYMENT, "nightly", parameters={"day": "2026-01-02"}
            ),
        ),
        "extra": {"row_count": 3},
        "metrics": {"rows": 1234567, "seconds": 2.5},
    }
    return AssetEvent(**{**values, **changes})


def recording(*events: AssetEvent) -> Recording:
    return Recording(UUID("00000000-0000-4000-8000-000000000009"), events or (event(),))


def two() -> Recording:
    return recording(
        event(), event(6, asset=Asset("s3://shop/new"), aliases=("late", "today"), partition_key="2026-01-02", extra={})
    )


def same(first: Recording, second: Recording) -> bool:
    return first.id == second.id and list(map(event_to_json, first.events)) == list(map(event_to_json, second.events))


@pytest.mark.parametrize(
    ("name", "body"), [("artifact", recording_to_artifact(two())), ("events", recording_to_prefect_events(two()))]
)
def test_bodies_are_as_agreed(name: str, body: object) -> None:
    agrees(f"recordings/{name}", json.loads(json.dumps(body)))


@pytest.mark.parametrize("data", [None, "", "{", "[]", '"text"', "{}", '{"version": 1, "recording": "no"}'])
def test_an_artifact_without_a_recording_is_refused(data: object) -> None:
    with pytest.raises(InvalidEvent, match="artifact 7"):
        recording_from_artifact({"id": 7, "data": data})


def test_the_events_of_a_recording_give_its_parts_back() -> None:
    posted = recording_to_prefect_events(two())
    assert [part_of_recording(each) for each in posted] == [(two().id, 2)] * 2
    parts = [recording_from_prefect_event(each) for each in posted]
    assert all(part is not None and part.id == two().id for part in parts)
    joined = Recording(two().id, tuple(part.events[0] for part in parts if part))
    assert same(joined, two())


def outside(**changes: Any) -> dict[str, Any]:
    return {
        "id": str(UUID(int=8)),
        "occurred": "2026-01-02T03:04:05Z",
        "event": "assetflow.asset.updated",
        "resource": {"prefect.resource.id": "S3://shop/orders/"},
        "related": [],
        "payload": {},
        **changes,
    }


@pytest.mark.rule("2.6")
def test_an_event_of_an_outsider_is_a_recording_of_its_own() -> None:
    payload = {"version": 1, "extra": {"a": 1}, "partition_key": "k", "aliases": ["z", "b", "z"], "data_version": "v"}
    found = recording_from_prefect_event(outside(payload=payload))
    assert found is not None
    only = found.events[0]
    assert found.id == only.id == UUID(int=8)
    assert (only.uri, only.extra, only.partition_key, only.aliases) == ("s3://shop/orders", {"a": 1}, "k", ("b", "z"))
    assert (only.origin.kind, only.data_version) == ("prefect", "v")
    assert part_of_recording(outside()) is None


@pytest.mark.rule("2.6")
def test_a_materialization_is_an_update_with_its_metadata_as_extra() -> None:
    related = [
        {"prefect.resource.id": f"prefect.flow-run.{FLOW_RUN}", "prefect.resource.role": "flow-run"},
        {
            "prefect.resource.id": f"prefect.flow.{FLOW}",
            "prefect.resource.role": "flow",
            "prefect.resource.name": "producer",
        },
        {"prefect.resource.id": "s3://shop/upstream", "prefect.resource.role": "asset"},
    ]
    found = recording_from_prefect_event(
        outside(event="prefect.asset.materialization.succeeded", payload={"rows": 2}, related=related)
    )
    assert found is not None
    run = found.events[0].source_flow_run
    assert found.events[0].extra == {"rows": 2}
    assert run is not None
    assert (run.id, run.flow_id, run.flow_name) == (FLOW_RUN, FLOW, "producer")


def test_rule_2_6_metadata_name_the_key_and_the_version_of_a_materialization() -> None:
    metadata = {"rows": 2, "assetflow": {"partition_key": "2026-01-01", "data_version": "7"}}
    found = recording_from_prefect_event(outside(event="prefect.asset.materialization.succeeded", payload=metadata))
    assert found is not None
    (event,) = found.events
    assert (event.extra, event.partition_key, event.data_version) == ({"rows": 2}, "2026-01-01", "7")


@pytest.mark.parametrize(
    "broken",
    [
        {"resource": {"prefect.resource.id": "s3://"}},
        {"resource": {}},
        {"id": "no"},
        {"occurred": None},
        {"payload": {"extra": [1]}},
        {"payload": {"version": 2}},
        {"payload": {"partition_key": " "}},
        {"payload": {"aliases": "x"}},
        {"payload": {"aliases": [""]}},
        {"payload": {"data_version": ""}},
        {"payload": {"data_version": 5}},
        {"resource": {"prefect.resource.id": "s3://b/k", "assetflow.recording": "no"}},
    ],
)
def test_what_breaks_chapters_1_and_2_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises((InvalidAsset, InvalidEvent)):
        recording_from_prefect_event(outside(**broken))


def test_what_users_say_is_shown_and_never_rendered() -> None:
    hostile = event(
        asset=Asset("s3://b/k", name="<img src=x onerror=alert(1)> **bold** `code`\n\n# title"),
        extra={"link": "[x](javascript:alert(1))"},
        partition_key="``",
    )
    text = describe_recording(recording(hostile))
    assert "\n" not in text
    assert not any(character in "<[#*" for character in "".join(_outside_code(text)))


def _outside_code(text: str) -> list[str]:
    """The text without its code spans, read as CommonMark does."""
    found: list[str] = []
    position = 0
    while position < len(text):
        if text[position] != "`":
            found.append(text[position])
            position += 1
            continue
        fence = len(text[position:]) - len(text[position:].lstrip("`"))
        end = position + fence
        while True:
            end = text.find("`" * fence, end)
            assert end >= 0, f"a code span is not closed in {text!r}"
            run = len(text[end:]) - len(text[end:].lstrip("`"))
            if run == fence:
                break
            end += run
        position = end + fence
    return found
