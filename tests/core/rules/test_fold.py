"""Recording, queueing and deciding, and what deploys and operators change: chapters 1 to 5, rule by rule."""

from dataclasses import replace
from uuid import UUID

import pytest

from assetflow.core.rules.fold import record
from assetflow.core.rules.registry import check_removal
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import Recording
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.errors import InvalidCall
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


def consumer(schedule: object) -> Consumer:
    return Consumer(1, "report/shop", UUID(int=1), ConsumerOptions(to_schedule(schedule)))


PLAIN = consumer(Asset("s3://lake/orders"))
DAILY = consumer(PartitionedAssetTimetable(assets=Asset("s3://lake/orders")))


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
