"""Examples 2 to 20 without a server: which URIs are one asset, what a schedule waits for, aliases, times and keys."""

from typing import Any

import pytest

from assetflow import Asset
from assetflow.errors import InvalidAsset
from tests.core.world import World
from tests.examples.simulated import answer, runs, task, updates

# Example 2: a schedule of one asset, in a list; a name does not make it another asset.

BUCKET = "s3://asset-bucket/example.csv"


def test_a_name_does_not_make_it_another_asset() -> None:
    named = {"asset": {"uri": BUCKET, "name": "bucket-1"}}
    assert runs({"plain": [BUCKET], "named": [named]}, updates(BUCKET)) == {"plain": [[BUCKET]], "named": [[BUCKET]]}
    expected = {"plain": [[BUCKET]], "named": [[BUCKET]]}
    assert runs({"plain": [BUCKET], "named": [named]}, [{"event": named["asset"]}]) == expected


# Example 3: a URI is compared literally, character by character, and never as a pattern.


@pytest.mark.rule("1.8")
@pytest.mark.parametrize("pattern", [r"input_\d+.csv", "input_2022*.csv"])
def test_a_pattern_is_an_ordinary_uri(pattern: str) -> None:
    assert runs({"consumer": pattern}, updates("input_20220101.csv")) == {"consumer": []}
    assert runs({"consumer": pattern}, updates(pattern)) == {"consumer": [[pattern]]}


def test_case_matters_in_a_host() -> None:
    assert Asset("s3://example/asset") != Asset("s3://Example/asset")
    assert runs({"consumer": "s3://example/asset"}, updates("s3://Example/asset")) == {"consumer": []}


# Example 4: which URIs are refused, and which stay as they are.


@pytest.mark.rule("1.5")
@pytest.mark.parametrize(
    ("uri", "what_to_do"),
    [
        ("s3://", "'s3://' breaks the rule of its scheme. Name the bucket, as in s3://bucket/key"),
        ("airflow://example_asset", "Choose another scheme"),
        ("èxample_datašet", "Percent-encode it"),
    ],
)
def test_refused_with_what_to_do(uri: str, what_to_do: str) -> None:
    with pytest.raises(InvalidAsset, match=what_to_do):
        Asset(uri)


@pytest.mark.parametrize("uri", ["x-my-thing://foobarbaz", "//example/asset", "example_asset"])
def test_unchanged(uri: str) -> None:
    assert Asset(uri).uri == uri


# Example 5: static facts about an asset are no part of what it is; an event has those that its producer declared.


@pytest.mark.rule("7.3")
def test_the_consumer_runs_and_the_event_has_the_producers_extra() -> None:
    world = World()
    world.consumer("consumer", Asset(BUCKET, extra={"different": "extras"}))
    (decision,) = world.happens(Asset(BUCKET, extra={"team": "trainees"}))
    (event,) = decision.events
    assert event.asset.extra == {"team": "trainees"}


# Example 6: a task that fails or skips updates nothing; one that completes does, whatever becomes of its flow.

REPORT = "s3://my-bucket/report.csv"


@pytest.mark.parametrize(("state", "expected"), [("failed", 0), ("skipped", 0), ("completed", 1)])
def test_only_a_task_that_completes_updates(state: str, expected: int) -> None:
    found = runs({"consumer": REPORT}, [{"task": {"outlets": [REPORT], "state": state}}])
    assert len(found["consumer"]) == expected


# Example 7: three assets in a list wait for all three, and each run consumes everything that came meanwhile.

ORDER = ["1", "1", "2", "1", "2", "1", "3", "2", "3", "2", "3", "2", "1"]


@pytest.mark.rule("4.2")
def test_two_runs_with_seven_and_six_events() -> None:
    found = answer({"consumer": ["1", "2", "3"]}, updates(*ORDER))
    assert [run["step"] for run in found["runs"]] == [6, 12]
    assert [[event["asset"] for event in run["events"]] for run in found["runs"]] == [ORDER[:7], ORDER[7:]]
    assert found["queued"] == {}


# Example 8: AND, OR and both, and what a run consumes.


def both(*members: object) -> dict[str, object]:
    return {"all": list(members)}


def either(*members: object) -> dict[str, object]:
    return {"any": list(members)}


@pytest.mark.rule("4.1")
def test_and_needs_both_and_or_runs_once_per_task() -> None:
    assert runs({"c": both("a", "b")}, updates("a")) == {"c": []}
    assert runs({"c": both("a", "b")}, updates("a", "b")) == {"c": [["a", "b"]]}
    assert runs({"c": either("a", "b")}, [task("a"), task("b")]) == {"c": [["a"], ["b"]]}
    assert runs({"c": either("a", "b")}, [task("a", "b")]) == {"c": [["a", "b"]]}
    found = runs({"c": either("a", "b", "c", "d")}, updates("a", "b", "c", "d"))
    assert found == {"c": [["a"], ["b"], ["c"], ["d"]]}


def test_and_and_or_in_one_another() -> None:
    found = runs({"c": either("a", both("b", "c"))}, updates("b", "a", "c", "b"))
    assert found == {"c": [["b", "a"], ["c", "b"]]}
    found = runs({"c": both(either("a", "b"), either("c", "d"))}, updates("a", "b", "c"))
    assert found == {"c": [["a", "b", "c"]]}


# Example 12: what waits in a queue, and what happens when somebody takes it out.


@pytest.mark.rule("3.7")
def test_what_is_taken_out_in_between_starts_nothing() -> None:
    consumers = {"waiting_for_asset_1_and_2": ["asset-1", "asset-2"]}
    removed = {"delete_queued": {"consumer": "waiting_for_asset_1_and_2", "asset": "asset-1"}}
    assert [run["step"] for run in answer(consumers, updates("asset-1", "asset-2"))["runs"]] == [1]
    found = answer(consumers, [*updates("asset-1"), removed, *updates("asset-2")])
    assert found["runs"] == []
    assert [event["asset"] for event in found["queued"]["waiting_for_asset_1_and_2"]] == ["asset-2"]


# Example 14: the same asset with the same extra through two aliases is one event; with another extra it is another.

OUTPUT = "s3://bucket/my-task"
THREE_UPDATES = {
    "task": {
        "outlets": [{"alias": "first"}, {"alias": "second"}, {"alias": "third"}],
        "emit": [
            {"alias": "first", "asset": OUTPUT, "extra": {"k": "v"}},
            {"alias": "second", "asset": OUTPUT, "extra": {"k": "v"}},
            {"alias": "third", "asset": OUTPUT, "extra": {"k2": "v2"}},
        ],
    }
}
OF_ALIASES = {"of the asset": OUTPUT, "of the first": {"alias": "first"}, "of the third": {"alias": "third"}}


@pytest.mark.rule("2.4")
def test_two_events_and_whom_they_reach() -> None:
    found = answer(OF_ALIASES, [THREE_UPDATES], receipts=True)
    runs = {run["consumer"]: [event["extra"] for event in run["events"]] for run in found["runs"]}
    assert len(found["runs"]) == 3
    assert runs == {
        "of the asset": [{"k": "v"}, {"k2": "v2"}],
        "of the first": [{"k": "v"}, {"k2": "v2"}],
        "of the third": [{"k2": "v2"}],
    }
    assert {receipt["event"] for receipt in found["receipts"]} == {1, 2}


# Example 15: an alias and an asset of the same name are two things; consumers of both run at the first update.

EXAMPLE_ALIAS = {"alias": "example-alias"}


@pytest.mark.rule("1.7")
def test_an_alias_and_an_asset_of_its_name_are_two_things() -> None:
    consumers = {"asset-consumer": OUTPUT, "asset-alias-consumer": EXAMPLE_ALIAS}
    through_alias = {"task": {"outlets": [EXAMPLE_ALIAS], "emit": [EXAMPLE_ALIAS | {"asset": OUTPUT}]}}
    assert runs(consumers, [task("example-alias")]) == {"asset-consumer": [], "asset-alias-consumer": []}
    assert runs(consumers, [through_alias]) == {"asset-consumer": [[OUTPUT]], "asset-alias-consumer": [[OUTPUT]]}


# Example 17: an alias brings assets that are named at run time, and their own later updates count for it too.

UPDATED = {"alias": "my-updated-buckets"}


@pytest.mark.rule("3.2")
def test_later_updates_of_an_asset_that_came_through_an_alias_count_for_it() -> None:
    steps = [
        step
        for bucket in ("updated_a", "updated_b")
        for step in ({"task": {"outlets": [UPDATED], "emit": [UPDATED | {"asset": bucket}]}}, task(bucket))
    ]
    found = runs({"consumer": UPDATED}, steps)
    assert found == {"consumer": [["updated_a"], ["updated_a"], ["updated_b"], ["updated_b"]]}


# Example 18: every midnight, and on every update; neither gets in the way of the other.

MIDNIGHT_OR_UPDATE = {"cron": "0 0 * * *", "timezone": "UTC", "assets": {"any": ["asset3", "asset4"]}}


@pytest.mark.rule("6.1")
def test_a_run_at_midnight_and_one_for_each_update() -> None:
    steps = [
        {"event": "asset3", "at": "2026-01-01T10:00:00Z"},
        {"advance": 0, "at": "2026-01-02T00:00:00Z"},
        {"event": "asset4", "at": "2026-01-02T10:00:00Z"},
    ]
    found = answer({"toy": {"asset_or_time": MIDNIGHT_OR_UPDATE}}, steps, start="2026-01-01T08:00:00Z")
    expected = [(None, ["asset3"]), ("2026-01-02T00:00:00Z", []), (None, ["asset4"])]
    assert [(run.get("time"), [event["asset"] for event in run["events"]]) for run in found["runs"]] == expected


# Example 19: keys start the flows that run by keys, and nobody else.

SALES = "s3://shop/sales"
BY_KEY = {"partitioned": {"assets": SALES}}
BY_DAY = {"partitioned": {"assets": SALES, "default_mapper": "day"}}


def test_keys_start_the_flows_that_run_by_keys() -> None:
    consumers: dict[str, Any] = {"each_key": BY_KEY, "each_day": BY_DAY, "plain": [SALES]}
    found = answer(consumers, [{"event": SALES}, {"event": SALES, "partition_key": "2026-01-01T05:00:00"}])["runs"]
    expected = [("plain", None), ("each_day", "2026-01-01"), ("each_key", "2026-01-01T05:00:00")]
    assert [(run["consumer"], run.get("partition_key")) for run in found] == expected


# Example 20: a day is made when its 24 hours are there.

HOURLY = "s3://shop/hourly"


def test_a_day_waits_for_its_hours() -> None:
    rollup: dict[str, Any] = {"rollup": {"upstream": "day", "window": "day"}}
    consumers = {"daily": {"partitioned": {"assets": HOURLY, "default_mapper": rollup}}}
    steps = [{"event": HOURLY, "partition_key": f"2026-01-01T{hour:02}:00:00"} for hour in range(24)]
    assert answer(consumers, steps[:23])["runs"] == []
    (run,) = answer(consumers, steps)["runs"]
    assert (run["step"], run["partition_key"], len(run["events"])) == (23, "2026-01-01", 24)
