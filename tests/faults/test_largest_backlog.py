"""A backlog of 100,000 updates: on a server of its own, because every later world there would read it again."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording
from tests.faults.conftest import Judged
from tests.faults.world import World, event, post_all

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(900)]

BIG_RECORDINGS = 475
IN_BIG_RECORDING = 200


@pytest.mark.failure("Processes", "the evaluator is killed while it reads a backlog")
def test_a_backlog_of_100000_is_worked_off_though_the_evaluator_is_killed(world: World, judged: Judged) -> None:
    """What tasks recorded is the most of it, and what somebody posted the rest."""
    a, b = world.uri("a"), world.uri("b")
    world.deploy("both", Asset(a) & Asset(b))
    world.begin("--since", (datetime.now(UTC) - timedelta(hours=3)).isoformat())
    world.terminate()
    start = datetime.now(UTC) - timedelta(hours=2)
    for number in range(BIG_RECORDINGS):
        world.task_recorded(big_recording(a, b if number % 25 == 24 else a), events=False)
    posted = 100_000 - BIG_RECORDINGS * IN_BIG_RECORDING
    post_all(world, [event(b if n % 1000 == 999 else a, start + timedelta(seconds=n), n=n) for n in range(posted)])
    world.start(ready=False)
    world.until(lambda: count(world) >= 40_000, 240)
    world.kill()
    before = count(world)
    assert before < 100_000
    world.start(ready=False)
    world.until(lambda: count(world) == 100_000, 300)
    world.settle()
    judged(world)


def big_recording(uri: str, last: str) -> Recording:
    """What a task says of many updates of one asset, and of one at the end."""
    now = datetime.now(UTC)
    uris = [*[uri] * (IN_BIG_RECORDING - 1), last]
    return Recording(
        uuid4(), tuple(AssetEvent(uuid4(), Asset(each), now, Origin("task"), {"n": n}) for n, each in enumerate(uris))
    )


def count(world: World) -> int:
    """How many updates the ledger has."""
    with world.reader() as ledger:
        return ledger.events.count()
