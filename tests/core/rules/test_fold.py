"""Recording, queueing and deciding, and what deploys and operators change: chapters 1 to 5, rule by rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.partitions import AllowedKeyMapper, FixedKeyMapper, StartOfDayMapper
from assetflow.core.rules.fold import Touched, pass_over, record
from assetflow.core.rules.registry import (
    NamedEvents,
    change,
    check_removal,
    pass_over_consumer,
    remove_queued,
    switch,
    touch_ended,
    touched_by_switch,
)
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.errors import InvalidCall, NameTaken
from tests.core.world import NOW, A, B, C, World, event, new_id


@pytest.fixture
def world() -> World:
    return World()


def test_rule_1_2_first_uri_keeps_a_name_and_the_event_is_made(world: World) -> None:
    world.consumer("c", Asset("s3://b/a", name="orders"))

    recorded = record(world.state, world.recording(Asset("s3://b/b", name="orders")), NOW)

    assert len(recorded.events) == 1
    assert "orders" in recorded.warnings[0]
    assert world.state.names.owner_of("orders") == "s3://b/a"


def test_rule_2_2_another_content_under_a_known_id_is_told(world: World) -> None:
    first = event(A, extra={"n": 1})
    assert not record(world.state, Recording(new_id(), (first,)), NOW).warnings
    assert not record(world.state, Recording(new_id(), (replace(first),)), NOW).warnings
    changed = ({"asset": B}, {"extra": {"n": 2}}, {"partition_key": "k"}, {"data_version": "2"})
    for other in (replace(first, **each) for each in changed):
        again = record(world.state, Recording(new_id(), (other,)), NOW)
        assert again.events == []
        (warning,) = again.warnings
        assert str(first.id) in warning
        assert other.uri in warning


def test_rule_2_4_parts_of_one_attempt_are_all_recorded_however_they_come(world: World) -> None:
    small, large = event(A, extra={"rows": 1}), event(A, extra={"rows": 2})
    world.happens(small, recording=new_id("task"))
    world.happens(small, large, recording=new_id("task"))

    assert world.state.changes.events == [small, large]


def test_rule_2_4_an_unknown_asset_is_told(world: World) -> None:
    through_alias = event(A, aliases=("x",))

    assert record(world.state, world.recording(through_alias), NOW).new_assets == [A.uri]
    assert record(world.state, world.recording(event(A)), NOW).new_assets == []


def test_rule_3_4_held_deployment_queues_and_waits(world: World) -> None:
    consumer = world.consumer("c", A, held=True)

    assert world.happens(A) == []
    assert world.statuses(consumer) == ["queued"]
    assert len(pass_over_consumer(world.state, switch(world.state, consumer, held=False, now=NOW), NOW)) == 1


def test_rule_3_5_first_reason_counts_key_before_pause_before_mapping(world: World) -> None:
    refusing = PartitionedAssetTimetable(assets=A, default_partition_mapper=AllowedKeyMapper(["us"]))
    paused = world.consumer("paused", refusing, paused=True)
    running = world.consumer("running", refusing)

    world.queue(event(A))
    world.queue(event(A, partition_key="mars"))

    assert world.statuses(paused) == ["not_for_consumer", "dropped"]
    assert world.statuses(running) == ["not_for_consumer", "not_mapped"]
    assert "mars" in world.state.receipts.of(running.id, 2)[0].error


def test_rule_4_6_a_rebuilt_ledger_decides_the_same() -> None:
    first, second = World(), World()
    for each in (first, second):
        each.consumer("c", A)
    same = event(A)

    assert first.happens(same)[0].id == second.happens(same)[0].id


def test_rule_5_3_a_key_that_comes_again_opens_a_new_partition(world: World) -> None:
    world.consumer("c", PartitionedAssetTimetable(assets=A))

    for _ in range(2):
        assert [d.target_key for d in world.happens(event(A, partition_key="k"))] == ["k"]


def test_a_pass_over_nobody_decides_nothing(world: World) -> None:
    world.consumer("c", A)
    world.queue(A)

    assert pass_over(world.state, {}, NOW) == []


@pytest.mark.parametrize("output_format", [" ", "x" * 251], ids=["blank", "over-long"])
def test_rule_5_4_a_target_key_that_can_be_no_key_is_not_mapped(world: World, output_format: str) -> None:
    mapper = StartOfDayMapper(input_format="%Y-%m-%d", output_format=output_format)
    broken = world.consumer("broken", PartitionedAssetTimetable(assets=A, default_partition_mapper=mapper))
    world.consumer("sound", PartitionedAssetTimetable(assets=A))

    decisions = world.happens(event(A, partition_key="2026-03-14"))

    assert [decision.target_key for decision in decisions] == ["2026-03-14"]
    assert world.statuses(broken) == ["not_mapped"]


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


def consumer(schedule: object) -> Consumer:
    return Consumer(1, "report/shop", UUID(int=1), ConsumerOptions(to_schedule(schedule)))


PLAIN = consumer(Asset("s3://lake/orders"))
DAILY = consumer(PartitionedAssetTimetable(assets=Asset("s3://lake/orders")))


@pytest.mark.parametrize(("of", "key", "narrowed"), [(None, None, True), (PLAIN, None, False), (DAILY, "a", False)])
def test_rule_3_7_what_names_enough_is_removed(of: Consumer | None, key: str | None, narrowed: bool) -> None:
    check_removal(of, key, narrowed=narrowed)


@pytest.mark.parametrize(
    ("of", "key", "narrowed", "where"),
    [
        (None, None, False, "consumer"),
        (None, "a", True, "consumer"),
        (DAILY, None, True, "key"),
        (DAILY, "", False, "key"),
        (PLAIN, "a", False, "key"),
    ],
)
def test_rule_3_7_what_names_too_little_or_too_much_is_refused(
    of: Consumer | None, key: str | None, narrowed: bool, where: str
) -> None:
    with pytest.raises(InvalidCall) as refused:
        check_removal(of, key, narrowed=narrowed)
    assert (refused.value.where, refused.value.rule) == (where, "3.7")


def test_the_keys_that_may_be_meant_are_named() -> None:
    with pytest.raises(InvalidCall, match="pending partitions: 2026-01-01, 2026-01-02"):
        check_removal(DAILY, None, narrowed=False, pending_keys=lambda: ["2026-01-01", "2026-01-02"])


def test_rule_3_7_the_events_that_are_named() -> None:
    earlier, later = (event(A, recorded=NOW + timedelta(minutes=minutes)) for minutes in (0, 1))
    of_other = event(B, recorded=NOW)
    events = [earlier, later, of_other]

    def named(**given: Any) -> list[AssetEvent]:
        return [each for each in events if NamedEvents(**given).has(each)]

    assert named() == events
    assert named(uri=A.uri) == [earlier, later]
    assert named(event_id=later.id) == [later]
    assert named(before=NOW + timedelta(minutes=1)) == [earlier, of_other]
    assert named(uri=B.uri, event_id=later.id) == []
