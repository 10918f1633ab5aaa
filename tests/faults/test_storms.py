"""The long form: five hundred updates of all kinds while everything is killed again and again, by several seeds."""

import pytest

from tests.faults import chaos
from tests.faults.conftest import Judged
from tests.faults.world import World

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(1800)]


@pytest.mark.failure(
    "Processes",
    "all processes are killed, stopped or frozen at random (`kill -9`, SIGTERM, SIGSTOP), the evaluator also at "
    "chosen lines",
    "restart what is dead; nothing else is needed",
)
@pytest.mark.failure(
    "Processes",
    "the evaluator is killed or frozen",
    "status: `dead or frozen: …`, or `silent: …` if it is frozen on this machine. Started again, it continues where "
    "it stopped",
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_five_hundred_updates_in_a_storm(world: World, judged: Judged, seed: int) -> None:
    world.deploy_consumers()
    world.begin()
    world.produce("task", 90, seed)
    world.produce("task", 60, seed + 100)
    world.produce("materialize", 80, seed)
    world.produce("emit", 120, seed)
    world.produce("post", 150, seed)
    world.employ()
    chaos.storm(world, seed, chaos.shuffled(seed, 16), seconds=1500)
    world.settle()
    assert judged(world).accepted >= 400


@pytest.mark.failure(
    "Processes", "a task's process is killed", "the run is Crashed; run the flow again. Two task runs are two updates"
)
@pytest.mark.parametrize("point", ["between-publish-and-record", "between-record-and-event"])
def test_a_task_killed_at_a_chosen_point(world: World, judged: Judged, point: str) -> None:
    """What was not recorded is made again by the next flow run; what was recorded counts, announced or not."""
    world.deploy_consumers()
    world.begin()
    producer = world.produce("task", 5, seed=4, crash_at=point)
    assert producer.process.wait(60) == -9
    world.until(world.produced, 120)
    world.settle()
    verdict = judged(world)
    recorded_before_its_death = point == "between-record-and-event"
    assert verdict.accepted >= 5 + recorded_before_its_death
