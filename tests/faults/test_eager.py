"""Eager flows run once for what has changed, whatever is killed, away, rebuilt or wrong about the time. Contract 8."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Pin, Recording, SourceFlowRun
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.prefect_io.names import DECISION_LABEL
from tests.faults.conftest import Judged
from tests.faults.test_freshness import all_told, told
from tests.faults.test_ledger_in_trouble import rebuild
from tests.faults.test_time import skewed
from tests.faults.world import ENDED, PATIENCE, World
from tests.ledger.write.test_kept import kept

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(900)]

FLOWS = ("core", "report")
FAILED = {"state": {"type": "FAILED", "name": "Failed"}, "force": True}


def deploy(world: World, name: str, reads: str, makes: str, code: str | None = None) -> str:
    """Deploy an Eager flow, or another version of its code; return the id of the deployment."""
    return world.deploy_declared(name, kept([Asset(world.uri(reads))], [Asset(world.uri(makes))], code=code))


def made(
    world: World, run: Mapping[str, Any], makes: str, code: str | None = None, read: Mapping[str, Pin] | None = None
) -> None:
    """Leave what the task of a run leaves."""
    flow_run = SourceFlowRun(UUID(run["id"]), deployment_id=UUID(run["deployment_id"]))
    now, pins = datetime.now(UTC), {world.uri(name): pin for name, pin in (read or {}).items()}
    event = AssetEvent(
        uuid4(), Asset(world.uri(makes)), now, Origin("task", flow_run=flow_run), code_version=code, read=pins
    )
    world.task_recorded(Recording(uuid4(), (event,)))


def end(world: World, run: Mapping[str, Any], state: Mapping[str, Any] = ENDED) -> None:
    world.post(f"/flow_runs/{run['id']}/set_state", state)


def finish(
    world: World, run: Mapping[str, Any], makes: str, code: str | None = None, read: Mapping[str, Pin] | None = None
) -> None:
    """Leave what the task of a run leaves, and end the run."""
    made(world, run, makes, code, read)
    end(world, run)


def nth_run(world: World, deployment: str, number: int) -> dict[str, Any]:
    """Return a run of a deployment as soon as it is there; there must not be more."""
    world.until(lambda: len(world.runs(deployment)) >= number, PATIENCE)
    runs = world.runs(deployment)
    assert len(runs) == number, [each["name"] for each in runs]
    return runs[-1]


def ended(world: World, count: int) -> None:
    """Return when the ledger knows that so many runs have ended."""

    def is_known() -> bool:
        with world.reader() as ledger:
            return sum(each.ended is not None for each in ledger.decisions.find()) == count

    world.until(is_known, PATIENCE)


@pytest.mark.failure(
    "Processes", "the evaluator is killed around the run of an Eager flow", "the flow runs once, and once below"
)
@pytest.mark.parametrize("point", ["between-event-and-ledger", "between-ledger-and-launch", "between-launch-and-mark"])
def test_killed_at_each_point_around_a_run_of_an_eager_flow(world: World, judged: Judged, point: str) -> None:
    core, report = deploy(world, "core", "a", "core"), deploy(world, "report", "core", "board")
    world.begin(crash_at=point)
    world.update_and_store(world.uri("a"))
    world.crashed()
    world.start()
    first = nth_run(world, core, 1)
    finish(world, first, "core")
    below = nth_run(world, report, 1)
    finish(world, below, "board")
    ended(world, 2)
    world.settle()
    assert (len(world.runs(core)), len(world.runs(report))) == (1, 1)
    judged(world, unfolded=FLOWS)


@pytest.mark.failure(
    "Processes", "the evaluator is killed in the middle of a backfill of an asset", "each target runs once"
)
@pytest.mark.parametrize("point", ["between-ledger-and-launch", "between-launch-and-mark", ""])
def test_killed_in_the_middle_of_a_backfill(world: World, judged: Judged, point: str) -> None:
    """Each target of the backfill runs once; without a point, the evaluator is away while the upper run ends."""
    core, report = deploy(world, "core", "a", "core"), deploy(world, "report", "core", "board")
    world.begin()
    world.update_and_store(world.uri("a"))
    for number, (deployment, makes) in enumerate([(core, "core"), (report, "board")], 1):
        run = nth_run(world, deployment, 1)
        finish(world, run, makes)
        ended(world, number)
    world.kill()
    assert world.command("backfill", f"{world.uri('core')}+").returncode == 0
    if point:
        world.start(crash_at=point, ready=False)
        world.crashed()
    world.start()
    again = nth_run(world, core, 2)
    world.kill()
    finish(world, again, "core")
    world.start()
    below = nth_run(world, report, 2)
    finish(world, below, "board")
    ended(world, 4)
    world.settle()
    assert (len(world.runs(core)), len(world.runs(report))) == (2, 2)
    with world.reader() as reader:
        (backfill,) = reader.backfills.all()
    assert backfill.state == "completed"
    judged(world, unfolded=FLOWS)


@pytest.mark.failure(
    "Consumers and updates",
    "the code version of an Eager flow goes from 1 to 2 and back to 1",
    "a run after each deploy",
)
def test_a_rollback_of_the_code_runs_three_times(world: World, judged: Judged) -> None:
    """The versions 1, 2, 1: Prefect must not take the third run for the first one."""
    core = deploy(world, "core", "a", "core", "1")
    world.begin()
    world.update_and_store(world.uri("a"))
    for number, code in enumerate(["1", "2", "1"], 1):
        assert deploy(world, "core", "a", "core", code) == core
        run = nth_run(world, core, number)
        finish(world, run, "core", code)
        ended(world, number)
    world.settle()
    assert len({each["labels"][DECISION_LABEL] for each in world.runs(core)}) == 3
    judged(world, unfolded=FLOWS)


def with_history(world: World) -> tuple[str, str]:
    """Let `core` have a good run and one that failed, and `report` one that goes on; return their ids."""
    core, report = deploy(world, "core", "a", "core"), deploy(world, "report", "core", "board")
    world.begin()
    world.update_and_store(world.uri("a"))
    first = nth_run(world, core, 1)
    finish(world, first, "core")
    nth_run(world, report, 1)
    world.update_and_store(world.uri("a"))
    end(world, nth_run(world, core, 2), FAILED)
    ended(world, 2)
    return core, report


def goes_on_as_ever(world: World, core: str, report: str) -> None:
    """What was asked for is not asked for again; the update that nobody has heard of starts one run."""
    third = nth_run(world, core, 3)
    finish(world, third, "core")
    (running,) = world.runs(report)
    finish(world, running, "board")
    last = nth_run(world, report, 2)
    finish(world, last, "board")
    ended(world, 5)
    world.settle()
    assert (len(world.runs(core)), len(world.runs(report))) == (3, 2)


@pytest.mark.failure("The ledger", "the ledger was deleted")
def test_the_ledger_of_eager_flows_is_rebuilt(world: World, on_a_file: None, judged: Judged) -> None:  # noqa: ARG001
    since = datetime.now(UTC)
    core, report = with_history(world)
    world.kill()
    world.lose_ledger()
    rebuild(world, since)
    assert (len(world.runs(core)), len(world.runs(report))) == (2, 1), "no flood"
    world.update_and_store(world.uri("a"))
    world.start()
    goes_on_as_ever(world, core, report)
    judged(world, unfolded=FLOWS)


@pytest.mark.failure("The ledger", "somebody restored an older ledger")
def test_an_older_ledger_of_eager_flows_is_put_back(world: World, on_a_file: None, judged: Judged) -> None:  # noqa: ARG001
    """The copy was made before anything ran."""
    deploy(world, "core", "a", "core")
    deploy(world, "report", "core", "board")
    world.begin()
    copy = world.copy_of_ledger()
    world.kill()
    core, report = with_history(world)
    world.kill()
    world.update_and_store(world.uri("a"))
    world.lose_ledger()
    copy.rename(world.ledger)
    world.start()
    goes_on_as_ever(world, core, report)
    judged(world, unfolded=FLOWS)


@pytest.mark.failure(
    "Processes",
    "the run of an Eager flow starts and ends while no evaluator runs, and an update comes meanwhile",
    "what its task has read counts; another run follows only if it has not read the update",
)
@pytest.mark.parametrize("has_read", [True, False], ids=["read", "unread"])
def test_a_run_whose_start_was_never_heard(world: World, judged: Judged, has_read: bool) -> None:
    """While nobody listens, an update comes, and the run starts and ends: what its task has read counts."""
    core = deploy(world, "core", "a", "core")
    world.begin()
    world.update_and_store(world.uri("a"))
    run = nth_run(world, core, 1)
    world.kill()
    world.update_and_store(world.uri("a"))
    first, second = (UUID(each["id"]) for each in world.stored())
    now = datetime.now(UTC)
    finish(world, run, "core", read={"a": Pin(2, second, now) if has_read else Pin(1, first, now)})
    world.start()
    ended(world, 1)
    nth_run(world, core, 1 if has_read else 2)
    world.settle()
    assert len(world.runs(core)) == (1 if has_read else 2)
    judged(world, unfolded=FLOWS)


@pytest.mark.failure(
    "Prefect",
    "the clock jumps over the instants of a freshness policy, and back",
    "the alerts come early, one event for each change",
)
def test_the_clock_jumps_over_the_instants_of_a_policy(world: World, tmp_path: Path, judged: Judged) -> None:
    """It jumps ahead over the instants of a policy, and back: each change is told once, and the flow runs as ever."""
    skew = tmp_path / "skew"
    skew.write_text("0")
    policy = FreshnessPolicy(timedelta(seconds=90), warn_after=timedelta(seconds=60))
    core = world.deploy_declared("core", kept([Asset(world.uri("raw"))], [Asset(world.uri("a"), freshness=policy)]))
    world.begin(program=skewed(skew))
    world.update_and_store(world.uri("raw"))
    first = nth_run(world, core, 1)
    finish(world, first, "a")
    ended(world, 1)
    world.update_and_store(world.uri("raw"))
    second = nth_run(world, core, 2)
    skew.write_text("300")
    world.until(lambda: len(told(world)) == 2, PATIENCE)
    skew.write_text("0")
    finish(world, second, "a")
    ended(world, 2)
    world.until(lambda: len(told(world)) == 3 and all_told(world), PATIENCE)
    world.settle()
    assert [each.change.state for each in reversed(all_told(world))] == ["warn", "fail", "pass"]
    assert {each["id"] for each in told(world)} == {str(each.id) for each in all_told(world)}
    assert len(world.runs(core)) == 2
    judged(world, unfolded=FLOWS)
