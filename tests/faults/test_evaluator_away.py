"""The evaluator does not hear, or is not there: what came meanwhile is made up for, in order."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from assetflow.core.values.assets import Asset
from assetflow.prefect_io.recordings import recording_to_artifact
from tests.environment.prefect_server import PrefectServer, free_port
from tests.faults.conftest import Judged
from tests.faults.proxy import Proxy
from tests.faults.world import World, event, post_all
from tests.integration.installation import events_of, recording

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(900)]


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Give a process a moment to end."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.2)
    return process.poll() is not None


@pytest.fixture
def other(world: World, own_server: PrefectServer, tmp_path: Path) -> Iterator[World]:
    """The same assets and consumers with another ledger."""
    other = World(own_server, tmp_path / "other")
    other.mark = world.mark
    yield other
    other.close()


@pytest.mark.failure(
    "Prefect", "the websocket is cut for a minute", "the evaluator reads Prefect's logs every three seconds"
)
def test_the_websocket_is_cut_for_a_minute(behind: World, proxy: Proxy, judged: Judged) -> None:
    deployment = behind.deploy("either", Asset(behind.uri("a")) | Asset(behind.uri("b")))
    behind.begin()
    with proxy.websockets_cut():
        behind.update(behind.uri("a"))
        behind.task_recorded(recording(behind.uri("b")), events=False)
        behind.until(lambda: len(behind.runs(deployment)) == 2, 60)
        proxy.wait(60)
        behind.update(behind.uri("a"))
    behind.until(lambda: len(behind.runs(deployment)) == 3, 60)
    assert "listening for updates: " in behind.log
    behind.until(lambda: "listening for updates: works again" in behind.log)
    behind.settle()
    judged(behind)


@pytest.mark.failure(
    "Prefect", "the evaluator is more than 256 events behind, and Prefect drops events", "it also reads the log"
)
def test_the_evaluator_is_behind_by_far_more_than_256_events(behind: World, proxy: Proxy, judged: Judged) -> None:
    """The server drops what a subscriber is too far behind with; the event log is read too."""
    a, b = behind.uri("a"), behind.uri("b")
    behind.deploy("both", Asset(a) & Asset(b))
    behind.begin()
    filling = "x" * 20_000
    with proxy.websockets_stalled():
        now = datetime.now(UTC)
        events = [event(b if n % 30 == 29 else a, now + timedelta(milliseconds=n), fill=filling) for n in range(900)]
        post_all(behind, events)
    behind.until(lambda: len(behind.recorded()) == 900, 120)
    behind.settle()
    judged(behind)


@pytest.mark.failure("Processes", "no evaluator ran for hours", "it catches up in the order of the updates")
def test_the_evaluator_is_down_for_hours_of_event_time(world: World, judged: Judged) -> None:
    """The ledger is hours old, as are the updates: they are found by their time, and in its order."""
    a, b = world.uri("a"), world.uri("b")
    deployment = world.deploy("both", Asset(a) & Asset(b))
    world.begin("--since", (datetime.now(UTC) - timedelta(hours=8)).isoformat())
    world.kill()
    start = datetime.now(UTC) - timedelta(hours=6)
    # The log tells the order, not the time at which they were posted.
    events = [event(b if n % 10 == 9 else a, start + timedelta(minutes=n), n=n) for n in range(300)]
    post_all(world, events[::-1])
    world.settle()
    runs = world.runs(deployment)
    assert len(runs) == 30
    consumed = sorted([each["extra"]["n"] for each in events_of(run)] for run in runs)
    assert consumed == [list(range(n, n + 10)) for n in range(0, 300, 10)]
    judged(world)


@pytest.mark.failure(
    "Processes", "5,000 events wait", "it starts the runs one after the other, about 30 a second on SQLite"
)
def test_a_backlog_of_5000_events_is_worked_off_in_order(world: World, judged: Judged) -> None:
    a, b = world.uri("a"), world.uri("b")
    world.deploy("both", Asset(a) & Asset(b))
    world.begin("--since", (datetime.now(UTC) - timedelta(hours=3)).isoformat())
    world.terminate()
    start = datetime.now(UTC) - timedelta(hours=2)
    post_all(world, [event(b if n % 20 == 19 else a, start + timedelta(seconds=n), n=n) for n in range(5_000)])
    world.start()
    world.until(lambda: len(world.recorded()) == 5_000, 300)
    world.settle()
    assert [each.extra["n"] for each in world.recorded()] == list(range(5_000))
    assert judged(world).decisions == 250


@pytest.mark.failure(
    "Prefect",
    "clocks of producers differ by five minutes",
    'nothing; an event that "occurred" before the ledger was created is refused',
)
def test_clocks_of_producers_differ_by_five_minutes(world: World, judged: Judged) -> None:
    """Heard at once; not heard, they are found by the full sweep at the next start."""
    a, b = world.uri("a"), world.uri("b")
    world.deploy("both", Asset(a) & Asset(b))
    world.begin()
    for skew in (-300, 300, 0, -300, 300):
        now = datetime.now(UTC) + timedelta(seconds=skew)
        post_all(world, [event(a, now), event(b, now + timedelta(milliseconds=1))])
    # What occurred before the ledger's time is outside, by whatever clock.
    world.until(lambda: len(world.recorded()) >= 6, 60)
    world.kill()
    now = datetime.now(UTC)
    post_all(world, [event(a, now - timedelta(seconds=1)), event(b, now + timedelta(seconds=300))])
    world.settle()
    assert len(world.recorded()) == 12
    judged(world)


@pytest.mark.failure(
    "Prefect",
    "somebody posts an event that occurred hours or days ago, while no evaluator is running",
    "the start reads the last seven days in full",
)
def test_events_older_than_any_overlap_are_found_at_the_next_start(world: World, judged: Judged) -> None:
    a = world.uri("a")
    world.deploy("one", Asset(a))
    world.begin("--since", (datetime.now(UTC) - timedelta(days=6)).isoformat())
    now = datetime.now(UTC)
    post_all(world, [event(a, now - timedelta(days=5)), event(a, now - timedelta(hours=2)), event(a, now)])
    world.settle()
    assert len(world.recorded()) == 3
    assert judged(world).runs == 3


@pytest.mark.failure(
    "Prefect",
    "somebody posts an event that occurred hours or days ago",
    "it is recorded within minutes: the evaluator counts the events of the last seven days, and reads where there are"
    " more than before",
)
def test_an_event_of_a_producer_an_hour_behind_is_recorded_while_the_evaluator_runs(
    world: World, judged: Judged
) -> None:
    """Prefect's websocket does not hand over what occurred so long ago."""
    a = world.uri("a")
    world.deploy("one", Asset(a))
    world.begin("--since", (datetime.now(UTC) - timedelta(days=2)).isoformat())
    post_all(world, [event(a, datetime.now(UTC))])
    world.until(lambda: len(world.recorded()) == 1, 60)
    post_all(world, [event(a, datetime.now(UTC) - timedelta(hours=1))])
    world.until(lambda: len(world.recorded()) == 2, 180)
    world.settle()
    assert judged(world).runs == 2


@pytest.mark.failure(
    "Processes",
    "the evaluator is killed while it reads a backlog",
    "it records a thousand updates at a time, and continues there",
)
def test_an_evaluator_killed_in_a_backlog_goes_on_where_it_was(world: World, judged: Judged) -> None:
    a = world.uri("a")
    world.deploy("one", Asset(a), coalesce=True)
    world.begin("--since", (datetime.now(UTC) - timedelta(hours=3)).isoformat())
    world.terminate()
    start = datetime.now(UTC) - timedelta(hours=2)
    post_all(world, [event(a, start + timedelta(seconds=n), n=n) for n in range(4_000)])
    world.start(ready=False)
    world.until(lambda: len(world.recorded()) >= 1_000, 120)
    world.kill()
    assert len(world.recorded()) < 4_000, "the backlog was worked off before the kill"
    with world.reader() as ledger:
        assert datetime.fromisoformat(str(ledger.cursor("events"))) >= start + timedelta(seconds=999)
    world.start()
    world.until(lambda: len(world.recorded()) == 4_000, 300)
    assert [each.extra["n"] for each in world.recorded()] == list(range(4_000))
    world.settle()
    judged(world, unfolded=["one"])


@pytest.mark.failure(
    "Processes",
    "another ledger took over, and somebody calls `assetflow emit` on the first one's machine",
    "the update goes through Prefect, and `emit` says so",
)
@pytest.mark.usefixtures("on_a_file")
def test_an_update_beside_a_ledger_that_was_taken_over_reaches_the_other_one(
    world: World, other: World, judged: Judged
) -> None:
    a = world.uri("a")
    deployment = world.deploy("one", Asset(a))
    first = world.begin()
    other.start("--take-over")
    assert first.wait(60) == 2, world.log
    emitted = world.command("emit", a)
    assert emitted.returncode == 0, emitted.stderr
    assert "has taken over" in emitted.stderr
    world.run_of(deployment)
    other.until(lambda: len(other.recorded()) == 1)
    assert world.recorded() == []
    other.terminate()
    world.start("--take-over")
    assert "has taken over" not in world.command("emit", a).stderr
    world.until(lambda: len(world.runs(deployment)) == 2)
    world.settle()
    assert judged(world).runs == 2


@pytest.mark.failure(
    "Processes",
    "another ledger took over, and the first one's server takes updates for some seconds, or while Prefect does not "
    "answer",
    "`emit` warns. The first ledger's evaluator, or the next `emit` there, writes to Prefect what the other ledger "
    "lacks",
)
def test_updates_that_a_server_takes_before_it_notices_reach_the_other_ledger(world: World, other: World) -> None:
    """Its evaluator looks every 10 s whether another ledger has taken over; its API answers 200 until then."""
    a, port = world.uri("a"), free_port()
    world.deploy("one", Asset(a))
    first = world.begin("--port", str(port), program=("-m", "assetflow", "server", "start"))
    posted: list[str] = []
    other.start("--take-over")
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as api, suppress(httpx.TransportError):
        while not has_ended(first):
            posted.append(str(uuid4()))
            answer = api.post("/api/v1/events", json={"events": [{"uri": a, "id": posted[-1]}]})
            if not answer.is_success:
                posted.pop()
    accepted = set(posted[:-1])
    assert first.wait(60) == 2, world.log
    assert {str(event.id) for event in world.recorded()} & accepted
    other.until(lambda: accepted <= {str(event.id) for event in other.recorded()}, 60)


@pytest.mark.failure(
    "Processes",
    "a second evaluator is started on a SQLite ledger",
    "it exits with 2: `another evaluator is running on this ledger: …`",
)
@pytest.mark.failure(
    "Processes",
    "an evaluator is frozen past its lease, another one starts, the first one wakes up",
    "the first one exits with 2; nothing runs twice",
)
@pytest.mark.failure(
    "Processes",
    "a second ledger is used with the same Prefect",
    "its evaluator exits with 2: `this Prefect belongs to the ledger …`; use that ledger, or `--take-over`",
)
@pytest.mark.usefixtures("on_a_file")
def test_two_evaluators_and_two_ledgers_on_one_prefect(world: World, other: World, judged: Judged) -> None:
    """The second one is refused; frozen past its lease and woken, the first one doubles nothing."""
    a = world.uri("a")
    world.deploy("one", Asset(a))
    first = world.begin()
    refused = world.command("evaluator", "start")
    assert refused.returncode == 2
    assert f"process {first.pid}" in refused.stderr
    foreign = other.command("evaluator", "start")
    assert foreign.returncode == 2
    assert "--take-over" in foreign.stderr
    world.freeze()
    world.until(lambda: not world.status()[1]["evaluator"]["alive"], 60)
    post_all(world, [event(a, datetime.now(UTC)) for _ in range(20)])
    second = world.start()
    world.until(lambda: len(world.recorded()) == 20, 60)
    os.kill(first.pid, 18)
    assert first.wait(60) == 2
    assert "another evaluator is running on this ledger" in world.log
    assert second.poll() is None
    world.settle()
    assert judged(world).runs == 20


@pytest.mark.failure(
    "Consumers and updates",
    "somebody posts an update that breaks the rules",
    "`assetflow events ls --refused` says which and why; post it with another id",
)
def test_status_says_what_is_wrong(world: World) -> None:
    a = world.uri("a")
    world.deploy("one", Asset(a))
    evaluator = world.begin()
    code, said = world.status()
    assert code == 0, said
    assert said["evaluator"]["pid"] == evaluator.pid
    assert said["lag"]["updates"] == 0
    world.kill()
    world.post("/artifacts/", recording_to_artifact(recording(a)))
    post_all(world, [event(a, datetime.now(UTC))])
    # A lease in a file ends with its process, one on Postgres some seconds later.
    world.until(lambda: not world.status()[1]["evaluator"]["alive"])
    code, said = world.status()
    assert code == 1
    assert said["lag"]["updates"] == 2
    post_all(world, [event("airflow://reserved", datetime.now(UTC))])

    def said_after_settling() -> tuple[int, int]:
        world.settle()
        said = world.status()[1]
        return said["lag"]["updates"], said["refused"]

    # Prefect stores an event some time after it has taken it.
    world.until(lambda: said_after_settling() == (0, 1))
    assert "refused " in world.log
