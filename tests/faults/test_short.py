"""The short form: a hundred updates by producers of four kinds, while everything is killed once."""

import pytest

from tests.faults import chaos
from tests.faults.conftest import Judged
from tests.faults.world import World

pytestmark = [pytest.mark.prefect, pytest.mark.timeout(900)]

SEED = 7


@pytest.mark.failure(
    "Processes",
    "all processes are killed, stopped or frozen at random (`kill -9`, SIGTERM, SIGSTOP), the evaluator also at "
    "chosen lines",
)
@pytest.mark.failure("Processes", "the evaluator is killed or frozen")
@pytest.mark.parametrize(
    "database",
    [
        pytest.param("sqlite", marks=pytest.mark.long),
        pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.long]),
    ],
    indirect=True,
)
def test_a_hundred_updates_while_everything_is_killed_once(world: World, judged: Judged) -> None:
    world.deploy_consumers()
    world.begin()
    world.produce("task", 30, SEED)
    world.produce("materialize", 10, SEED)
    world.produce("emit", 25, SEED)
    world.produce("post", 35, SEED)
    blows = [chaos.kill_evaluator, chaos.kill_producer, chaos.kill_server, chaos.freeze_evaluator, chaos.stop_evaluator]
    chaos.storm(world, SEED, blows, seconds=600)
    world.settle()
    verdict = judged(world)
    assert verdict.accepted >= 70
    assert verdict.decisions >= 20
