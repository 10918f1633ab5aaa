"""Prefect's own events beside ours, while everything is killed: each update counts once, none is lost. Contract 2.10.

`ASSETFLOW_FAULTS_UPDATES=10000` makes the long form, which takes five minutes.
"""

import os
import random
from collections import Counter
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceTaskRun
from assetflow.prefect_io.recordings import recording_to_artifact, recording_to_prefect_events
from tests.faults import chaos
from tests.faults.proxy import Proxy
from tests.faults.world import World

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(7200)]

UPDATES = int(os.environ.get("ASSETFLOW_FAULTS_UPDATES", "300"))
A_ROUND = 100
BLOWS = (chaos.kill_evaluator, chaos.crash_evaluator, chaos.kill_server)


def leave(world: World, count: int) -> set[UUID]:
    """Leave so many updates as tasks do, each a recording of its own, and return their ids."""
    origin, now = Origin("task", SourceTaskRun(uuid4())), datetime.now(UTC)
    events = [AssetEvent(uuid4(), Asset(world.uri(f"made-{place % 20}")), now, origin) for place in range(count)]
    recordings = [Recording(uuid4(), (event,)) for event in events]
    for recording in recordings:
        world.post("/artifacts/", recording_to_artifact(recording))
    world.post("/events", [event for each in recordings for event in recording_to_prefect_events(each)])
    return {event.id for event in events}


def copies(world: World) -> int:
    """How many of Prefect's own events its log has of this world's assets."""
    wanted = {
        "event": {"name": ["prefect.asset.materialization.succeeded"]},
        "resource": {"id_prefix": [world.uri("made-")]},
    }
    return world.post("/events/filter", {"filter": wanted, "limit": 1})["total"]


@pytest.mark.failure(
    "Prefect",
    "with `ASSETFLOW_NATIVE_EVENTS=true`, evaluator and server are killed and answers are lost, again and again",
    "it posts Prefect's own event of an update from the ledger until Prefect's log has it, and counts none of them",
)
@pytest.mark.rule("2.10")
def test_each_update_counts_once_and_is_told_once(behind: World, proxy: Proxy) -> None:
    world = behind
    world.env["ASSETFLOW_NATIVE_EVENTS"] = "true"
    dice, made = random.Random(10), set[UUID]()
    world.start()
    while len(made) < UPDATES:
        made |= leave(world, min(A_ROUND, UPDATES - len(made)))
        with (
            proxy.websockets_cut(),
            proxy.broken(lambda _method, path: "lose the answer" if "/events" in path else None),
        ):
            dice.choice(BLOWS)(world, dice)
        if world.evaluator.poll() is not None:
            world.start(ready=False)
    if world.evaluator.poll() is None:
        world.kill()
    world.start(ready=False)
    world.until(lambda: copies(world) == len(made), 60 + UPDATES)
    world.settle()
    assert Counter(event.id for event in world.recorded()) == dict.fromkeys(made, 1)
    assert copies(world) == len(made)
