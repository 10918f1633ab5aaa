"""Time acts once at each instant, whatever is killed, away or wrong about the time. Contract 9.6, 9.8."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.timing import Deadline, Intake
from assetflow.prefect_io.names import DEADLINE_MISSED
from tests.faults.conftest import Judged
from tests.faults.proxy import Proxy
from tests.faults.world import PATIENCE, World
from tests.integration.installation import events_of

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(900)]

SKEWED = str(Path(__file__).with_name("skewed.py"))
SOON = timedelta(seconds=3)
TIMED = ("quiet", "late")


def told(world: World) -> Counter[str]:
    """Return how many events of missed deadlines Prefect's log has, for each deployment."""
    now = datetime.now(UTC)
    stretch = {"since": (now - timedelta(hours=1)).isoformat(), "until": (now + timedelta(hours=1)).isoformat()}
    body = {"filter": {"event": {"name": [DEADLINE_MISSED]}, "occurred": stretch}, "limit": 50}
    names = [each["resource"]["prefect.resource.name"] for each in world.post("/events/filter", body)["events"]]
    return Counter(name.partition("/")[2] for name in names if world.mark in name)


def deploy(world: World) -> tuple[str, str]:
    """Deploy a flow that waits for quiet, and one that has to run soon after its oldest update."""
    a, b = Asset(world.uri("a")), Asset(world.uri("b"))
    quiet = world.deploy("quiet", a, intake=Intake(debounce=SOON))
    return quiet, world.deploy("late", a & b, deadline=Deadline(SOON, then="run"))


def both_ran(world: World, quiet: str, late: str) -> bool:
    return bool(world.runs(quiet)) and bool(world.runs(late)) and told(world)["late"] > 0


def assert_each_once(world: World, quiet: str, late: str) -> None:
    world.settle()
    assert (len(world.runs(quiet)), len(world.runs(late))) == (1, 1)
    assert told(world) == {"late": 1}


@pytest.mark.failure(
    "Processes",
    "the evaluator is killed at each point around an instant",
    "the next start decides the instant, as of its time",
)
@pytest.mark.rule("9.6")
@pytest.mark.parametrize(
    "point",
    [
        "between-reading-and-instant",
        "between-ledger-and-launch",
        "between-launch-and-mark",
        "between-state-and-freshness-event",
        "between-freshness-event-and-mark",
    ],
)
def test_killed_at_each_point_around_an_instant(world: World, judged: Judged, point: str) -> None:
    quiet, late = deploy(world)
    world.begin(crash_at=point)
    world.update_and_store(world.uri("a"))
    world.crashed()
    world.start()
    world.until(lambda: both_ran(world, quiet, late), PATIENCE)
    assert_each_once(world, quiet, late)
    judged(world, unfolded=TIMED)


@pytest.mark.failure(
    "Processes",
    "the leading evaluator is killed over the instant of a deadline or a wait",
    "the other one decides the instant, and reports the deadline once",
)
@pytest.mark.postgres
@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_two_evaluators_around_an_instant(world: World, judged: Judged) -> None:
    """The one that leads stands still over the instant; the other one takes over, and the first comes back."""
    quiet, late = deploy(world)
    world.begin()
    world.start_another()
    world.update_and_store(world.uri("a"))
    world.until(lambda: len(world.recorded()) == 1, PATIENCE)
    world.freeze()
    world.until(lambda: both_ran(world, quiet, late), PATIENCE)
    world.thaw()
    world.until(lambda: "lost its lease" in world.log, PATIENCE)
    for other in world.others:
        other.terminate()
        other.wait(60)
    assert_each_once(world, quiet, late)
    judged(world, unfolded=TIMED)


@pytest.fixture
def skew(tmp_path: Path) -> Path:
    place = tmp_path / "skew"
    place.write_text("0")
    return place


@pytest.mark.failure(
    "Prefect",
    "the clock of the evaluator's machine jumps ahead, and back",
    "what falls due in the jump happens at once; a wait that began in it ends when the clock has caught up",
)
def test_the_clock_jumps(world: World, judged: Judged, skew: Path) -> None:
    """It jumps ahead over an instant, and back: what comes then counts after what is decided."""
    quiet, late = deploy(world)
    world.begin(program=skewed(skew))
    world.update_and_store(world.uri("a"))
    world.until(lambda: len(world.recorded()) == 1, PATIENCE)
    skew.write_text("20")
    world.until(lambda: both_ran(world, quiet, late), PATIENCE)
    skew.write_text("0")
    world.update_and_store(world.uri("a"))
    world.until(lambda: (len(world.runs(quiet)), len(world.runs(late))) == (2, 2), PATIENCE)
    world.until(lambda: told(world)["late"] == 2, PATIENCE)
    judged(world, unfolded=TIMED)


@pytest.mark.failure("Prefect", "the clock of the evaluator's machine was ahead and is corrected", "nothing")
def test_the_clock_was_hours_ahead_once(behind: World, proxy: Proxy, judged: Judged, skew: Path) -> None:
    """How far the logs were read then hides nothing later, neither at the next start nor while it runs."""
    deployment = behind.deploy("one", Asset(behind.uri("a")))
    skew.write_text("7200")
    behind.begin(program=skewed(skew))
    behind.update_and_store(behind.uri("a"))
    behind.until(lambda: len(behind.runs(deployment)) == 1, PATIENCE)
    behind.terminate()
    skew.write_text("0")
    behind.update_and_store(behind.uri("a"))
    with proxy.websockets_cut():
        behind.start(program=skewed(skew))
        behind.until(lambda: len(behind.runs(deployment)) == 2, 60)
        behind.update_and_store(behind.uri("a"))
        behind.until(lambda: len(behind.runs(deployment)) == 3, 60)
    judged(behind)


@pytest.mark.failure(
    "Prefect",
    "the clocks of the evaluator and of Prefect differ by five minutes",
    "a wait may end up to five minutes early; nothing runs twice",
)
@pytest.mark.parametrize("seconds", [-300, 300], ids=["behind", "ahead"])
def test_the_clocks_of_evaluator_and_prefect_differ_by_five_minutes(
    world: World, judged: Judged, skew: Path, seconds: int
) -> None:
    skew.write_text(str(seconds))
    quiet, late = deploy(world)
    world.begin(program=skewed(skew))
    world.update_and_store(world.uri("a"))
    world.until(lambda: both_ran(world, quiet, late), PATIENCE)
    assert_each_once(world, quiet, late)
    judged(world, unfolded=TIMED)


def skewed(skew: Path) -> tuple[str, ...]:
    return (SKEWED, str(skew), "evaluator", "start")


@pytest.mark.failure(
    "Prefect",
    "Prefect is away over a deadline, an opening or the end of a wait",
    "what was in time counts as in time, and a missed deadline is reported once",
)
@pytest.mark.rule("9.6")
def test_prefect_is_away_over_a_deadline(behind: World, proxy: Proxy, judged: Judged) -> None:
    """What came in time while nobody could look was in time; what did not is missed, once."""
    a, b, c = (Asset(behind.uri(name)) for name in "abc")
    in_time = behind.deploy("quiet", a & b, deadline=Deadline(timedelta(seconds=8), then="run"))
    late = behind.deploy("late", a & c, deadline=Deadline(timedelta(seconds=8), then="run"))
    behind.begin()
    behind.update_and_store(a.uri)
    behind.until(lambda: len(behind.recorded()) == 1, PATIENCE)
    with proxy.websockets_cut(), proxy.broken(lambda _method, _path: "503"):
        behind.update_and_store(b.uri)
        behind.until(lambda: due(behind, timedelta(seconds=10)), PATIENCE)
        assert not behind.runs(late)
    behind.until(lambda: behind.runs(in_time) and both_ran(behind, in_time, late), PATIENCE)
    assert_each_once(behind, in_time, late)
    (run,) = behind.runs(in_time)
    assert [each["uri"] for each in events_of(run)] == [a.uri, b.uri]
    judged(behind, unfolded=TIMED)


def due(world: World, span: timedelta) -> Any:
    """Return True when so much time has passed since the first update was recorded."""
    first = world.recorded()[0].recorded
    return first is not None and datetime.now(UTC) >= first + span


@pytest.mark.failure(
    "Consumers and updates",
    "a flow is deployed, paused or resumed while no evaluator runs",
    "it counts from the start on, before the updates that were missed; openings and deadlines before the start do not"
    " count for it",
)
def test_a_deploy_during_a_downtime(world: World, judged: Judged) -> None:
    """It counts from the start on: a deadline that lies in the downtime is not missed, and its pass comes at once."""
    a, b = Asset(world.uri("a")), Asset(world.uri("b"))
    late = world.deploy("late", a & b, deadline=Deadline(SOON))
    world.begin()
    world.update_and_store(a.uri)
    world.until(lambda: len(world.recorded()) == 1, PATIENCE)
    world.kill()
    assert world.deploy("late", a, deadline=Deadline(SOON)) == late
    world.until(lambda: due(world, 2 * SOON), PATIENCE)
    world.start()
    world.until(lambda: world.runs(late), PATIENCE)
    world.settle()
    assert len(world.runs(late)) == 1
    assert told(world) == {}
    judged(world, unfolded=TIMED)
