"""Recording, queueing, deciding: chapters 2 to 5 of the contract, rule by rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from assetflow.core.partitions import (
    AllowedKeyMapper,
    FixedKeyMapper,
    MinimumCount,
    RollupMapper,
    SegmentWindow,
    StartOfDayMapper,
)
from assetflow.core.rules.fold import pass_over, record
from assetflow.core.rules.registry import pass_over_consumer, switch
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import Recording
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from tests.core.world import NOW, A, B, C, World, event, new_id, uris


@pytest.fixture
def world() -> World:
    return World()


def test_rule_1_1_names_do_not_matter_for_identity(world: World) -> None:
    world.consumer("c", Asset("s3://b/a", name="orders"))

    assert len(world.happens(Asset("s3://b/a/", name="other"))) == 1


def test_rule_1_2_first_uri_keeps_a_name_and_the_event_is_made(world: World) -> None:
    world.consumer("c", Asset("s3://b/a", name="orders"))

    recorded = record(world.state, world.recording(Asset("s3://b/b", name="orders")), NOW)

    assert len(recorded.events) == 1
    assert "orders" in recorded.warnings[0]
    assert world.state.names.owner_of("orders") == "s3://b/a"


def test_rule_1_6_reference_is_resolved_when_evaluated(world: World) -> None:
    world.consumer("c", Asset.ref(name="orders"))

    assert world.happens(A) == []
    assert len(world.happens(Asset("s3://b/a", name="orders"))) == 1


def test_rule_2_2_same_id_twice_is_one_event(world: World) -> None:
    consumer = world.consumer("c", A & B)
    same = event(A)

    world.happens(same)
    world.happens(same)

    assert world.statuses(consumer) == ["queued"]


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


def test_rule_2_1_another_attempt_of_a_recording_adds_no_second_event_of_an_asset(world: World) -> None:
    world.happens(event(A, extra={"try": 1}), recording=new_id("task"))
    later = NOW + timedelta(seconds=9)
    retried = [event(A, extra={"try": 2}, occurred=later), event(B, occurred=later)]
    world.happens(*retried, recording=new_id("task"))

    assert [e.uri for e in world.state.changes.events] == [A.uri, B.uri]


def test_rule_2_4_parts_of_one_attempt_are_all_recorded_however_they_come(world: World) -> None:
    small, large = event(A, extra={"rows": 1}), event(A, extra={"rows": 2})
    world.happens(small, recording=new_id("task"))
    world.happens(small, large, recording=new_id("task"))

    assert world.state.changes.events == [small, large]


def test_rule_2_4_an_unknown_asset_is_told(world: World) -> None:
    through_alias = event(A, aliases=("x",))

    assert record(world.state, world.recording(through_alias), NOW).new_assets == [A.uri]
    assert record(world.state, world.recording(event(A)), NOW).new_assets == []


def test_rule_3_2_alias_gets_later_events_of_a_linked_asset(world: World) -> None:
    world.consumer("c", AssetAlias("x"))

    assert world.happens(A) == []
    assert len(world.happens(event(A, aliases=("x",)))) == 1
    assert len(world.happens(A)) == 1


def test_rule_3_3_keys_and_kinds(world: World) -> None:
    plain = world.consumer("plain", A)
    partitioned = world.consumer("partitioned", PartitionedAssetTimetable(assets=A))

    world.queue(event(A, partition_key="k"))
    world.queue(event(A))

    assert world.statuses(plain) == ["not_for_consumer", "queued"]
    assert world.statuses(partitioned) == ["queued", "not_for_consumer"]


def test_rule_3_4_paused_consumer_drops_or_keeps(world: World) -> None:
    drops = world.consumer("drops", A, paused=True)
    keeps = world.consumer("keeps", A, paused=True, while_paused="keep")

    assert world.happens(A) == []
    assert world.statuses(drops) == ["dropped"]
    assert world.statuses(keeps) == ["queued"]
    assert len(pass_over_consumer(world.state, switch(world.state, keeps, paused=False), NOW)) == 1


def test_rule_3_4_held_deployment_queues_and_waits(world: World) -> None:
    consumer = world.consumer("c", A, held=True)

    assert world.happens(A) == []
    assert world.statuses(consumer) == ["queued"]
    assert len(pass_over_consumer(world.state, switch(world.state, consumer, held=False), NOW)) == 1


def test_rule_3_5_first_reason_counts_key_before_pause_before_mapping(world: World) -> None:
    refusing = PartitionedAssetTimetable(assets=A, default_partition_mapper=AllowedKeyMapper(["us"]))
    paused = world.consumer("paused", refusing, paused=True)
    running = world.consumer("running", refusing)

    world.queue(event(A))
    world.queue(event(A, partition_key="mars"))

    assert world.statuses(paused) == ["not_for_consumer", "dropped"]
    assert world.statuses(running) == ["not_for_consumer", "not_mapped"]
    assert "mars" in world.state.receipts.of(running.id, 2)[0].error


def test_rule_3_5_event_that_nobody_wants(world: World) -> None:
    world.queue(A)

    assert world.statuses(None) == ["no_consumer"]


def test_rule_3_6_new_consumer_starts_empty(world: World) -> None:
    world.queue(A)

    consumer = world.consumer("c", A & B)

    assert world.happens(B) == []
    assert [e.uri for e in world.state.queues.queued(consumer.id, None)] == [B.uri]


def test_rule_4_1_one_event_satisfies_several_leaves(world: World) -> None:
    world.consumer("c", [A, Asset.ref(uri="s3://b/a"), A])

    assert len(world.happens(A)) == 1


@pytest.mark.parametrize("schedule", [[], None])
def test_rule_4_1_nothing_never_runs(world: World, schedule: object) -> None:
    consumer = world.consumer("c", schedule)

    assert world.happens(A) == []
    assert pass_over_consumer(world.state, consumer, NOW) == []


def test_rule_4_1_link_by_an_event_that_is_not_for_the_consumer_counts(world: World) -> None:
    world.consumer("c", A & AssetAlias("x"))

    assert world.happens(A) == []
    assert len(world.happens(event(A, partition_key="k", aliases=("x",)))) == 1


def test_rule_4_2_a_decision_consumes_all_oldest_first(world: World) -> None:
    world.consumer("c", A | (B & C))

    world.queue(B, B)

    assert [uris(decision) for decision in world.happens(A)] == [[B.uri, B.uri, A.uri]]
    assert world.happens(C) == []


def test_rule_4_3_one_pass_for_one_recording(world: World) -> None:
    world.consumer("c", A | B)

    assert [uris(decision) for decision in world.happens(A, B)] == [[A.uri, B.uri]]


def test_rule_4_6_a_rebuilt_ledger_decides_the_same() -> None:
    first, second = World(), World()
    for each in (first, second):
        each.consumer("c", A)
    same = event(A)

    assert first.happens(same)[0].id == second.happens(same)[0].id


def test_rule_4_7_coalesce_waits_for_the_end_of_the_run(world: World) -> None:
    consumer = world.consumer("c", A, coalesce=True)

    assert len(world.happens(A)) == 1
    assert world.happens(A) == world.happens(A) == []
    world.state.decisions.end_runs(consumer.id)
    assert [len(d.events) for d in pass_over_consumer(world.state, consumer, NOW)] == [2]


def test_rule_5_2_rollup_waits_for_its_window(world: World) -> None:
    mapper = RollupMapper(
        upstream_mapper=FixedKeyMapper("all"), window=SegmentWindow(["us", "eu", "apac"]), wait_policy=MinimumCount(2)
    )
    world.consumer("c", PartitionedAssetTimetable(assets=A, default_partition_mapper=mapper))

    assert world.happens(event(A, partition_key="us")) == []
    assert world.happens(event(A, partition_key="mars")) == []
    (decision,) = world.happens(event(A, partition_key="eu"))
    assert (decision.target_key, len(decision.events)) == ("all", 3)


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
