"""Example 5: static facts about an asset are no part of what it is; an event has those that its producer declared."""

import pytest

from assetflow import Asset
from tests.core.world import World

URI = "s3://asset-bucket/example.csv"


@pytest.mark.rule("7.3")
def test_the_consumer_runs_and_the_event_has_the_producers_extra() -> None:
    world = World()
    world.consumer("consumer", Asset(URI, extra={"different": "extras"}))
    (decision,) = world.happens(Asset(URI, extra={"team": "trainees"}))
    (event,) = decision.events
    assert event.asset.extra == {"team": "trainees"}
