"""Several evaluators on one Postgres ledger: one leads, and when it dies or stands still, another one takes over."""

import json
import signal
import subprocess
import time

import pytest

from assetflow.core.values.assets import Asset
from assetflow.errors import LedgerError
from tests.environment.postgres import closed
from tests.faults.conftest import Judged
from tests.faults.world import PATIENCE, Kind, World
from tests.integration.installation import recording

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.postgres,
    pytest.mark.faults,
    pytest.mark.timeout(900),
    pytest.mark.parametrize("database", ["postgres"], indirect=True),
]

SEED = 11
LOAD: dict[Kind, int] = {"task": 60, "materialize": 20, "emit": 40, "post": 80}
SECONDS_TO_TAKE_OVER = 10.0


@pytest.mark.failure(
    "Processes",
    "the leading evaluator is killed or stands still (Postgres)",
    "another one leads; the one that stood still logs that it `lost its lease`, and stands by",
)
def test_the_leader_is_killed_and_the_next_one_frozen_in_mid_load(world: World, judged: Judged) -> None:
    world.deploy_consumers()
    killed = world.begin()
    others = [world.start_another() for _ in range(2)]
    world.until(lambda: set(standbys(world)) == {each.pid for each in others}, PATIENCE)
    assert leader(world) == killed.pid
    for kind, count in LOAD.items():
        world.produce(kind, count, SEED)
    world.until(lambda: len(world.recorded()) >= 20, PATIENCE)
    killed.kill()
    killed.wait()
    taken_over(world, others)
    recorded = len(world.recorded())
    world.until(lambda: len(world.recorded()) >= recorded + 20, PATIENCE)
    frozen = next(each for each in others if each.pid == leader(world))
    frozen.send_signal(signal.SIGSTOP)
    (successor,) = (each for each in others if each is not frozen)
    taken_over(world, [successor])
    world.until(lambda: len(world.recorded()) >= recorded + 40, PATIENCE)
    frozen.send_signal(signal.SIGCONT)
    world.until(lambda: standbys(world) == [frozen.pid], PATIENCE)
    assert "stood still for too long and lost its lease" in world.log
    assert leader(world) == successor.pid
    world.until(world.produced, PATIENCE)
    # It is as good as new: when the other one ends, it leads at once, and works off what is left.
    successor.terminate()
    assert successor.wait(30) == 0, world.log
    world.until(lambda: leader(world) == ready(world) == frozen.pid, PATIENCE)
    frozen.terminate()
    assert frozen.wait(30) == 0, world.log
    world.settle()
    verdict = judged(world)
    assert verdict.accepted >= 180
    assert "Traceback" not in world.log


@pytest.mark.failure(
    "The ledger",
    "Postgres is down",
    "commands exit with 2: `the database does not answer`; the evaluators work again by themselves when it is back",
)
def test_postgres_is_away_for_a_while(world: World, judged: Judged) -> None:
    """Neither who leads nor who stands by ends; what came meanwhile is recorded when it is back."""
    a = world.uri("a")
    world.deploy("one", Asset(a))
    first = world.begin()
    second = world.start_another()
    world.until(lambda: standbys(world) == [second.pid], PATIENCE)
    assert world.database is not None
    with closed(world.database):
        for _ in range(5):
            world.update(a)
            world.task_recorded(recording(a), events=False)
        world.until(lambda: "the database does not answer" in world.log, PATIENCE)
        asked = world.command("status")
        assert asked.returncode == 2
        assert "the database does not answer" in asked.stderr
    world.until(lambda: len(world.recorded()) == 10, PATIENCE)
    assert first.poll() is None
    assert second.poll() is None
    second.terminate()
    assert second.wait(30) == 0, world.log
    world.settle()
    assert judged(world).runs == 10


def leader(world: World) -> int | None:
    """The process that holds the lease."""
    with world.reader() as reader:
        found = reader.evaluators()
        return found.lease.holder.pid if found.alive and found.lease is not None else None


def standbys(world: World) -> list[int]:
    """The processes that `assetflow status` says to stand by."""
    try:
        return [each["pid"] for each in world.status()[1]["standbys"]]
    except (LedgerError, json.JSONDecodeError):
        return []


def taken_over(world: World, processes: list[subprocess.Popen[bytes]]) -> None:
    """Return when one of these processes evaluates: it leads, and has recorded, within ten seconds from now."""
    began, before = time.monotonic(), heard(world)
    pids = {each.pid for each in processes}
    stages = {
        "leads": lambda: leader(world) in pids,
        "has recorded": lambda: heard(world) > before,
        "is ready": lambda: ready(world) in pids,
    }
    seconds: dict[str, float] = {}
    for stage, reached in stages.items():
        world.until(reached, PATIENCE)
        seconds[stage] = time.monotonic() - began
    print(", ".join(f"{stage} after {after:.1f} s" for stage, after in seconds.items()))  # noqa: T201
    for stage in ("leads", "has recorded"):
        assert seconds[stage] < SECONDS_TO_TAKE_OVER, stage


def heard(world: World) -> int:
    """How many updates an evaluator has recorded; `assetflow emit` writes into the ledger by itself."""
    return sum(event.origin.kind != "cli" for event in world.recorded())


def ready(world: World) -> int | None:
    """The process that says it is ready."""
    try:
        return json.loads((world.home / "evaluator.json").read_text())["pid"]
    except (OSError, ValueError):
        return None
