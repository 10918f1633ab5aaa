"""Deploying, changing, removing, and an operator's work on the queue."""

from __future__ import annotations

import pytest

from assetflow.core.partitions import FixedKeyMapper
from assetflow.core.rules.fold import Touched
from assetflow.core.rules.registry import change, remove_queued, switch, touch_ended, touched_by_switch
from assetflow.core.values.assets import Asset
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.errors import NameTaken
from tests.core.world import NOW, A, B, C, World, event


@pytest.fixture
def world() -> World:
    return World()


def options(schedule: object) -> ConsumerOptions:
    return ConsumerOptions(to_schedule(schedule))


def test_rule_1_2_second_uri_of_a_name_is_refused_and_named(world: World) -> None:
    world.consumer("c", Asset("s3://b/a", name="orders"))

    with pytest.raises(NameTaken, match=r"s3://b/a.*s3://b/b"):
        world.consumer("d", C & Asset("s3://b/b", name="orders"))

    assert len(world.state.consumers.live()) == 1
    assert world.state.names.owner_of(C.uri) is None


def test_rule_1_2_two_uris_of_a_name_in_one_schedule_are_refused(world: World) -> None:
    with pytest.raises(NameTaken):
        world.consumer("c", Asset("s3://b/a", name="n") | Asset("s3://b/b", name="n"))


def test_rule_1_2_a_named_asset_leaves_its_uri_free_as_a_name(world: World) -> None:
    world.consumer("c", Asset("x", name="orders"))

    world.consumer("d", Asset("s3://b/b", name="x"))

    assert world.state.names.owner_of("x") == "s3://b/b"


def test_rule_3_7_operator_removes_by_asset_and_says_why(world: World) -> None:
    consumer = world.consumer("c", A & B & C)
    world.queue(A, B)

    count = remove_queued(world.state, consumer, lambda e: e.uri == A.uri, [None], by="ann", why="wrong")

    (receipt,) = world.state.receipts.of(consumer.id, 1)
    assert (count, receipt.status, receipt.by, receipt.why) == (1, "removed", "ann", "wrong")
    assert world.statuses(consumer) == ["removed", "queued"]


def test_rule_4_4_invalid_schedule_changes_nothing(world: World) -> None:
    consumer = world.consumer("c", Asset("s3://b/a", name="n") & B)
    world.queue(A)

    with pytest.raises(NameTaken):
        change(world.state, consumer, options(Asset("s3://b/c", name="n")))

    assert world.statuses(consumer) == ["queued"]
    assert len(world.happens(B)) == 1


def test_rule_4_3_only_a_resume_or_a_release_is_a_reason_for_a_pass(world: World) -> None:
    consumer = world.consumer("c", A)
    paused = switch(world.state, consumer, paused=True, now=NOW)
    held = switch(world.state, consumer, held=True, now=NOW)

    assert touched_by_switch(world.state, paused, consumer) == {consumer.id: (consumer, None)}
    assert touched_by_switch(world.state, held, consumer) == {consumer.id: (consumer, None)}
    assert touched_by_switch(world.state, consumer, paused) == {}
    assert touched_by_switch(world.state, consumer, consumer) == {}


def test_rule_4_7_the_end_of_a_run_is_a_pass_of_a_consumer_that_coalesces(world: World) -> None:
    coalesces = world.consumer("c", A, coalesce=True)
    other = world.consumer("d", A)
    touched: Touched = {}

    touch_ended(world.state, other.id, ["k"], touched)
    touch_ended(world.state, 77, ["k"], touched)
    assert touched == {}

    for key in ("k", "l"):
        touch_ended(world.state, coalesces.id, [key], touched)
    assert touched == {coalesces.id: (coalesces, {"k", "l"})}

    touch_ended(world.state, coalesces.id, None, touched)
    touch_ended(world.state, coalesces.id, ["k"], touched)
    assert touched == {coalesces.id: (coalesces, None)}


def test_rule_5_6_changed_mapper_maps_anew_and_leaves_out_what_is_done(world: World) -> None:
    consumer = world.consumer("c", PartitionedAssetTimetable(assets=A & B))
    world.queue(event(A, partition_key="k"), event(A, partition_key="l"))
    remove_queued(world.state, consumer, lambda _: True, ["k"])

    mapper = FixedKeyMapper("k")
    change(world.state, consumer, options(PartitionedAssetTimetable(assets=A & B, default_partition_mapper=mapper)))

    assert {
        key: len(world.state.queues.queued(consumer.id, key)) for key in world.state.queues.target_keys(consumer.id)
    } == {"k": 1}
    assert world.statuses(consumer) == ["removed", "queued"]
