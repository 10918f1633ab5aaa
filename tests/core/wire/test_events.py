"""Updates as others write them: refused in a sentence, or taken without what only comes along and cannot be read."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.values.events import MOST_CHARACTERS, Pin, kept_payload
from assetflow.core.wire.events import (
    event_from_json,
    event_to_json,
    recorded_event_from_json,
    recording_from_json,
    recording_to_json,
)
from assetflow.core.wire.run_context import events_from_text, events_to_text
from assetflow.errors import AssetflowError, InvalidEvent

NUMBER = "00000000-0000-4000-8000-000000000001"
PLAIN = {"id": NUMBER, "uri": "s3://shop/orders", "occurred": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"id": None}, "id is missing"),
        ({"id": 5}, "id is 5, not a UUID"),
        ({"uri": None}, "uri is missing"),
        ({"uri": "s3://shop/a\0b"}, "holds the control character U+0000"),
        ({"extra": {"x": "y" * 70_000}}, "the extra has 70008 bytes, the limit is 65536"),
        ({"names": "n"}, 'names is "n", not a list of texts'),
        ({"name": "a\0b"}, "The name 'a\\x00b' is not valid text"),
        ({"group": "\udce9"}, "the group '\\udce9' of s3://shop/orders is not valid text"),
        ({"occurred": "noon"}, 'occurred is "noon", not a time'),
        ({"occurred": "0001-01-01T00:00+14:00"}, 'occurred is "0001-01-01T00:00+14:00", not a time'),
        ({"extra": [1]}, "extra is of type list, not a JSON object"),
        ({"extra": {"n": 2**64}}, "extra.n is an integer beyond 64 bits"),
        ({"asset_extra": {"n": float("nan")}}, "asset_extra.n is not JSON: it is NaN"),
        ({"partition_key": 5}, "partition_key is 5, not a text"),
        ({"aliases": ["x", 5]}, "aliases[1] is 5, not a text"),
    ],
)
def test_what_is_wrong_is_refused_in_a_sentence(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(AssetflowError) as caught:
        event_from_json({**PLAIN, **changed}, where="artifact 7")
    assert told in str(caught.value)
    str(caught.value).encode()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({}, "the recording has no list of events"),
        ({"recording": NUMBER, "events": ["x"]}, 'events[0] is "x", not a JSON object'),
        ({"events": []}, "the id of the recording is missing"),
        ({"recording": 5, "events": []}, "the id of the recording is 5, not a UUID"),
        ({"version": 3}, "this is version 3 of an update, and this assetflow reads version 1"),
    ],
)
def test_a_recording_that_is_none_is_refused_in_a_sentence(data: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        recording_from_json(data, where="artifact 7")
    assert caught.value.message.startswith(told)
    assert caught.value.where == "artifact 7"


@pytest.mark.rule("2.7")
def test_what_comes_along_is_kept_as_far_as_it_can_be_read() -> None:
    flow_run = {
        "id": NUMBER,
        "name": 7,
        "flow_name": "caf\udce9",
        "deployment_id": "no",
        "parameters": {"x": float("inf"), "n": 2**64},
        "scheduled_time": "0001-01-01T00:00+14:00",
        "data_interval_start": 5,
    }
    given = {
        "metrics": {"rows": "many", "bytes": 2**70, "rate": float("nan"), "files": 3, "seconds": 0.5, "ok": True},
        "inputs": {"s3://shop/raw": 7, "s3://shop/other": "x"},
        "code_version": {"a": 1},
        "sequence": "7",
        "recorded": "never",
        "started": "never",
        "origin": {"kind": "task", "flow_run": flow_run},
    }
    found = event_from_json({**PLAIN, **given})
    assert found.metrics == {"files": 3, "seconds": 0.5}
    assert found.inputs == {"s3://shop/raw": 7}
    assert found.code_version is None
    assert (found.sequence, found.recorded, found.started) == (None, None, None)
    run = found.source_flow_run
    assert run is not None
    assert (run.id, run.name, run.flow_name, run.deployment_id) == (UUID(NUMBER), "", "caf\ufffd", None)
    assert run.parameters == {"x": "Infinity", "n": str(2**64)}
    assert (run.scheduled_time, run.data_interval_start) == (None, None)
    json.dumps(event_to_json(found), allow_nan=False, ensure_ascii=False).encode()
    # What metrics and origin are is read in the same way by a second reader.
    assert event_to_json(event_from_json(event_to_json(found))) == event_to_json(found)


def test_what_an_older_version_recorded_is_read_as_it_stands() -> None:
    """Its ledger may hold what is refused today; its runs start all the same, and find their events."""
    poison = {"n": 2**64, "f": "caf\udce9", "r": float("inf"), "z": "\0"}
    stored = {**PLAIN, "uri": "a\0b", "name": "\udce9", "extra": poison, "aliases": ["\0"], "partition_key": "\udce9"}
    recorded = recorded_event_from_json(stored)
    written = events_to_text([recorded])
    assert written.isascii()
    (found,) = events_from_text(written)
    assert (found.uri, found.asset.name, found.extra) == ("a\0b", "\udce9", poison)
    assert (found.aliases, found.partition_key) == (("\0",), "\udce9")


@pytest.mark.parametrize("written", ["{", "{}", "[1]", 5, None, "[" * 100_000])
def test_damaged_events_of_a_run_are_refused(written: object) -> None:
    with pytest.raises(InvalidEvent, match=r"the flow run: the events of the run are not"):
        events_from_text(written, where="the flow run")


def test_of_something_large_that_is_refused_a_part_is_kept() -> None:
    small = {"id": 7, "data": "x" * 1000}
    assert kept_payload(small) == small
    artifact: Any = kept_payload({"id": 7, "data": "x" * 5_000_000})
    assert artifact["id"] == 7
    assert artifact["data"].startswith("x" * 2000)
    assert artifact["data"].endswith("(cut; it had 5000000 characters)")
    for large in ({str(n): n for n in range(10_000)}, ["x"] * 10_000, "x" * 20_000):
        kept: Any = kept_payload(large)
        assert len(json.dumps(kept)) < MOST_CHARACTERS
        assert kept["characters"] > MOST_CHARACTERS
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    poison: Any = kept_payload({"x": float("nan"), "n": 10**5000, "f": "\udce9", "deep": deep})
    assert (poison["x"], poison["f"]) == ("NaN", "\ufffd")


def test_what_was_read_confirmed_and_observed_comes_back() -> None:
    read = {"s3://shop/raw": {"event": NUMBER, "recorded": "2026-01-02T03:04:05Z"}, "s3://shop/bad": {"event": "x"}}
    stored = {**PLAIN, "inputs": {"s3://shop/raw": 7}, "read": read, "data_version": "v"}
    stored["started"] = "2026-01-02T04:04:05+01:00"
    for name in ("events", "confirmed", "observed"):
        given = {"recording": NUMBER, "events": [], name: [stored]}
        recording = recording_from_json(given)
        (event,) = getattr(recording, name)
        assert recording.told == (event,)
        assert event.read == {"s3://shop/raw": Pin(7, UUID(NUMBER), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))}
        assert event.started == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        written = recording_to_json(recording)
        (again,) = getattr(recording_from_json(written), name)
        assert (again.read, again.inputs, again.data_version) == (event.read, event.inputs, "v")
        assert again.started == event.started
        assert {"confirmed", "observed"} & written.keys() == {name} - {"events"}


@pytest.mark.parametrize("version", ["", " ", 5, "v" * 251, "a\0b"])
def test_rule_8_2_a_version_from_outside_is_checked(version: object) -> None:
    with pytest.raises(InvalidEvent, match="data_version is") as caught:
        event_from_json({**PLAIN, "data_version": version})
    assert caught.value.rule == "8.2"


def test_rule_1_6_all_names_travel_with_an_update() -> None:
    event = event_from_json(PLAIN | {"name": "sales", "names": ["revenue"]})
    assert event.asset.names == ("sales", "revenue")
    assert event_from_json(event_to_json(event)).asset.names == ("sales", "revenue")
