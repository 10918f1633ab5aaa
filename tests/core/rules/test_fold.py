"""Recording, queueing, deciding: chapters 2 to 5 of the contract, rule by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assetflow.core.partitions import AllowedKeyMapper, StartOfDayMapper
from assetflow.core.rules.fold import pass_over, record
from assetflow.core.rules.registry import pass_over_consumer, switch
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Recording
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from tests.core.world import NOW, A, B, World, event, new_id


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
