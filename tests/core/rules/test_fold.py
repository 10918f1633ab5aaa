"""Recording, queueing and deciding, and what deploys and operators change: chapters 1 to 5, rule by rule."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.rules.fold import Touched, record
from assetflow.core.rules.registry import (
    NamedEvents,
    check_removal,
    pass_over_consumer,
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


def test_rule_1_2_a_second_uri_of_a_name_is_refused_and_named(world: World) -> None:
    orders, others = Asset("s3://b/a", name="orders"), Asset("s3://b/b", name="orders")
    with pytest.raises(NameTaken):
        world.consumer("both", orders | others)
    world.consumer("c", orders)
    with pytest.raises(NameTaken, match=r"s3://b/a.*s3://b/b"):
        world.consumer("d", C & others)
    assert len(world.state.consumers.live()) == 1
    assert world.state.names.owner_of(C.uri) is None


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
