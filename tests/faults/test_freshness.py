"""Each change of state of an asset stands in Prefect's log once, whatever is killed or away. Contract 8.13."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from assetflow.core.freshness.asset_freshness import StateChange
from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.crash_points import FreshnessPoint
from assetflow.prefect_io.names import FRESHNESS_EVENTS
from tests.faults.conftest import Judged
from tests.faults.world import PATIENCE, World

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(900)]

PASSED = FRESHNESS_EVENTS["pass"]


def told(world: World) -> list[dict[str, Any]]:
    """Return the events about the asset in Prefect's log."""
    now = datetime.now(UTC)
    stretch = {"since": (now - timedelta(hours=1)).isoformat(), "until": (now + timedelta(hours=1)).isoformat()}
    given = {"event": {"name": [*FRESHNESS_EVENTS.values()]}, "occurred": stretch, "resource": {"id": [world.uri("a")]}}
    return world.post("/events/filter", {"filter": given, "limit": 50})["events"]


def all_told(world: World) -> list[StateChange]:
    """Return the changes of state in the ledger, as soon as all of them are known to be in Prefect's log."""
    with world.reader() as reader:
        found = reader.policies.changes()
    return found if all(each.stored is not None for each in found) else []


@pytest.mark.failure(
    "Processes",
    "the evaluator is killed while it reports that data got old",
    "each change of state is in Prefect's log once",
)
@pytest.mark.rule("8.13")
@pytest.mark.parametrize("point", get_args(FreshnessPoint))
def test_killed_at_each_point_around_an_event_of_freshness(world: World, judged: Judged, point: str) -> None:
    policy = FreshnessPolicy(timedelta(seconds=60), warn_after=timedelta(seconds=3))
    world.deploy("reader", Asset(world.uri("a"), freshness=policy))
    world.begin(crash_at=point)
    world.update_and_store(world.uri("a"))
    world.crashed()
    world.start()
    world.until(lambda: told(world), PATIENCE)
    world.update_and_store(world.uri("a"))
    world.until(lambda: any(each["event"] == PASSED for each in told(world)), PATIENCE)
    # It warns again three seconds after the second update.
    world.until(lambda: len(all_told(world)) == 3, PATIENCE)
    changes = all_told(world)
    assert [each.change.state for each in changes] == ["warn", "pass", "warn"]
    found = told(world)
    assert Counter((each["event"], each["occurred"]) for each in found).most_common(1)[0][1] == 1
    assert {each["id"] for each in found} == {str(each.id) for each in changes}
    judged(world)
