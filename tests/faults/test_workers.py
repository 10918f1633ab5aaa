"""A worker, or what it executes, is lost in the middle of a task: that makes no update, or exactly one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from assetflow.core.values.assets import Asset
from tests.faults.conftest import Judged
from tests.faults.worker import Worker
from tests.faults.world import World

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(600)]

PATIENCE = 120


@pytest.fixture
def worker(world: World) -> Worker:
    """A worker in a world with a consumer of the assets "a" and "b"."""
    world.deploy("one", Asset(world.uri("a")) | Asset(world.uri("b")))
    world.begin()
    return world.employ()


def order_and_hold(world: World, worker: Worker) -> tuple[str, Path]:
    """A flow run whose task is in its middle, and the gate that it waits for."""
    gate = world.home / "gate"
    run = worker.order(world.uri("a"), world.uri("b"), gate=gate)
    world.until(lambda: worker.noted("at_work"), PATIENCE)
    return run, gate


def ends(world: World, worker: Worker, run: str, state: str) -> None:
    world.until(lambda: worker.state(run) == state, PATIENCE)


@pytest.mark.failure(
    "Processes",
    "the process of a worker's flow run is killed in mid task",
    "the run is Crashed, without an update; retry it",
)
def test_a_flow_run_killed_in_mid_task_makes_no_update_and_its_retry_makes_one(
    world: World, worker: Worker, judged: Judged
) -> None:
    run, gate = order_and_hold(world, worker)
    worker.kill_runs()
    ends(world, worker, run, "CRASHED")
    gate.touch()
    assert world.recorded() == []
    worker.retry(run)
    ends(world, worker, run, "COMPLETED")
    world.settle()
    assert len(world.recorded()) == 2, "one for each outlet"
    assert judged(world).runs == 1


@pytest.mark.failure("Processes", "the worker is killed", "its flow runs continue, and their updates count")
def test_a_flow_run_goes_on_without_its_worker(world: World, worker: Worker, judged: Judged) -> None:
    run, gate = order_and_hold(world, worker)
    worker.kill()
    gate.touch()
    ends(world, worker, run, "COMPLETED")
    world.settle()
    assert judged(world).runs == 1


@pytest.mark.failure(
    "Processes",
    "the worker gets SIGTERM, or its machine loses power, in mid task",
    "Prefect shows the run as Running, and `coalesce` waits for its end: set it to Crashed and retry it",
)
@pytest.mark.parametrize("lose", [Worker.stop, Worker.lose_power], ids=["SIGTERM", "power"])
def test_a_run_whose_worker_is_gone_stays_as_it_is_until_it_is_retried(
    world: World, worker: Worker, judged: Judged, lose: Callable[[Worker], None]
) -> None:
    run, gate = order_and_hold(world, worker)
    lose(worker)
    world.until(lambda: not worker.run_processes())
    gate.touch()
    assert worker.state(run) == "RUNNING", "that is Prefect's own business"
    assert world.recorded() == []
    worker.start()
    worker.retry(run)
    ends(world, worker, run, "COMPLETED")
    world.settle()
    assert judged(world).runs == 1


@pytest.mark.failure("Processes", "a worker and its flow runs stand still, and Prefect is killed meanwhile", "nothing")
def test_a_worker_stands_still_in_mid_task(world: World, worker: Worker, judged: Judged) -> None:
    run, gate = order_and_hold(world, worker)
    worker.freeze()
    gate.touch()
    world.server.kill()
    world.server.start()
    worker.thaw()
    ends(world, worker, run, "COMPLETED")
    world.settle()
    assert judged(world).runs == 1


@pytest.mark.failure(
    "Processes",
    "the process of a worker's flow run is killed after its task has recorded",
    "the update counts once; a retry is another update",
)
@pytest.mark.parametrize(("point", "updates"), [("between-publish-and-record", 0), ("between-record-and-event", 2)])
def test_a_flow_run_killed_at_a_chosen_point(
    world: World, worker: Worker, judged: Judged, point: str, updates: int
) -> None:
    """Before it is recorded nothing counts; once it is, it counts, and the next run is another update."""
    run = worker.order(world.uri("a"), world.uri("b"), crash_at=point)
    ends(world, worker, run, "CRASHED")
    world.until(lambda: len(world.recorded()) == updates)
    again = worker.order(world.uri("a"), world.uri("b"))
    ends(world, worker, again, "COMPLETED")
    world.settle()
    assert len(world.recorded()) == updates + 2
    assert judged(world).runs == 1 + updates // 2
