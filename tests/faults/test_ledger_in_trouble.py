"""The ledger's disk is full, its file is locked, read-only, damaged or gone: clear words, and nothing lost."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from assetflow.core.values.assets import Asset
from tests.environment.prefect_server import PrefectServer
from tests.faults import chaos
from tests.faults.conftest import Judged
from tests.faults.world import CONSUMERS, World
from tests.integration.installation import recording

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(900), pytest.mark.usefixtures("on_a_file")]

SIZE = "4m"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes, as a folder."""
    place = tmp_path / "disk"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    try:
        subprocess.run(mounting, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small disk is not allowed here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def on_disk(own_server: PrefectServer, tmp_path: Path, small_disk: Path) -> Iterator[World]:
    """A world with its ledger on the small disk."""
    world = World(own_server, tmp_path / "home", ledger=small_disk / "ledger.db")
    yield world
    world.close()


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Within the block nothing more can be written to the disk."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    yield
    filler.unlink()


@pytest.mark.failure(
    "The ledger",
    "the ledger's disk is full",
    "status: `silent: …`; free some space, and the evaluator records what arrived meanwhile",
)
def test_the_disk_is_full(on_disk: World, small_disk: Path, judged: Judged) -> None:
    on_disk.deploy("one", Asset(on_disk.uri("a")))
    on_disk.begin()
    on_disk.update(on_disk.uri("a"))
    on_disk.until(lambda: len(on_disk.recorded()) == 1)
    with full(small_disk):
        for number in range(60):
            on_disk.task_recorded(recording(on_disk.uri("a")), events=bool(number % 2))
        on_disk.until(lambda: "the disk of the ledger is full" in on_disk.log, 60)
        emitted = on_disk.command("emit", on_disk.uri("a"))
        # It is either recorded or refused with the reason, never half.
        assert emitted.returncode == 0 or "disk" in emitted.stderr, emitted.stderr
        on_disk.until(lambda: on_disk.status()[1]["evaluator"]["silent"], 60)
        assert on_disk.status()[1]["lag"]["updates"] >= 1
        on_disk.kill()
        said = len(on_disk.log)
        started = on_disk.start(ready=False)
        # It ends, or it waits: that depends on the room that is left in the ledger's own files.
        on_disk.until(lambda: started.poll() is not None or "trying again" in on_disk.log[said:], 60)
        assert "the disk of the ledger is full" in on_disk.log[said:]
    if started.poll() is not None:
        assert started.poll() == 2, on_disk.log
        on_disk.start()
    assert "Traceback" not in on_disk.log
    on_disk.until(lambda: len(on_disk.recorded()) >= 61, 90)
    on_disk.settle()
    assert "Free some space" in on_disk.log
    judged(on_disk)


@pytest.mark.failure(
    "The ledger",
    "the disk of `ASSETFLOW_HOME` is full, and the ledger is elsewhere",
    "log: `…/evaluator.json cannot be written …`; the evaluator works anyway",
)
def test_the_disk_of_the_home_is_full(
    own_server: PrefectServer, tmp_path: Path, small_disk: Path, judged: Judged
) -> None:
    """The ledger is elsewhere: the evaluator works, and says that nobody can see that it is ready."""
    world = World(own_server, tmp_path / "home", ledger=tmp_path / "ledger.db")
    world.env["ASSETFLOW_HOME"] = str(small_disk)
    try:
        deployment = world.deploy("one", Asset(world.uri("a")))
        with full(small_disk):
            world.start(ready=False)
            world.until(lambda: "cannot be written" in world.log)
            world.update(world.uri("a"))
            world.run_of(deployment)
        world.settle()
        assert judged(world).runs == 1
    finally:
        world.close()


@pytest.mark.failure("The ledger", "the ledger is read-only", "the evaluator exits with 2: `the ledger is read-only`")
def test_the_ledger_is_read_only(on_disk: World, small_disk: Path, judged: Judged) -> None:
    on_disk.deploy("one", Asset(on_disk.uri("a")))
    on_disk.begin()
    on_disk.terminate()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    on_disk.task_recorded(recording(on_disk.uri("a")))
    refused = on_disk.command("evaluator", "start")
    assert refused.returncode == 2, refused.stderr
    assert "read-only" in refused.stderr or "cannot be opened" in refused.stderr, refused.stderr
    assert "do:" in refused.stderr
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    on_disk.settle()
    assert judged(on_disk).runs == 1


@pytest.mark.failure(
    "The ledger",
    "another process holds a lock on the ledger",
    "log: `ledger: …: another process holds the ledger`; end that process",
)
def test_the_ledger_is_locked(world: World, judged: Judged) -> None:
    world.deploy("one", Asset(world.uri("a")))
    world.begin()
    with closing(sqlite3.connect(world.ledger, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(5):
            world.update(world.uri("a"))
        world.until(lambda: "another process holds the ledger" in world.log, 60)
        assert world.status()[0] == 1
        other.execute("ROLLBACK")
    world.until(lambda: len(world.recorded()) == 5, 60)
    world.settle()
    assert judged(world).runs == 5


def storm_without_emit(world: World, seed: int) -> None:
    """What is emitted straight into the ledger is as durable as that; the rest can be rebuilt from Prefect."""
    world.deploy_consumers()
    world.begin()
    world.produce("task", 40, seed)
    world.produce("post", 40, seed)
    world.produce("materialize", 15, seed)
    chaos.storm(world, seed, [chaos.kill_evaluator, chaos.freeze_evaluator], seconds=400)
    world.settle()


def rebuild(world: World, since: datetime) -> None:
    refused = world.command("evaluator", "start", "--once")
    assert refused.returncode == 2
    assert "--take-over" in refused.stderr
    done = world.command("evaluator", "start", "--once", "--take-over", "--since", since.isoformat())
    assert done.returncode == 0, done.stderr
    world.settle()


@pytest.mark.failure(
    "The ledger",
    "the ledger was deleted",
    "the next start exits with 2: `this Prefect belongs to the ledger …`; [rebuild it](upkeep.md#a-lost-ledger)",
)
def test_the_ledger_is_deleted_and_rebuilt(world: World, judged: Judged) -> None:
    """What has its run stays decided, in whatever order the updates are found again."""
    since = datetime.now(UTC)
    storm_without_emit(world, seed=11)
    before, decided = judged(world), decisions(world)
    world.lose_ledger()
    rebuild(world, since)
    after = judged(world, unfolded=CONSUMERS)
    assert decisions(world) == decided
    assert (after.accepted, after.runs) == (before.accepted, before.runs)
    world.update_and_store(world.uri("c"))
    world.settle()
    assert len(decisions(world) - decided) == 1, "it goes on as ever"


@pytest.mark.failure(
    "The ledger",
    "somebody restored an older ledger",
    "log: `this ledger does not know decision …`, `rebuilding: done`; emit nothing until then",
)
def test_an_older_ledger_is_put_back(world: World, judged: Judged) -> None:
    """What was decided after the copy was made has its runs: none is made a second time, and nothing consumed twice."""
    world.deploy_consumers()
    world.begin()
    dice = Random(13)
    updates(world, 60, dice)
    copy = world.copy_of_ledger()
    updates(world, 120, dice)
    world.settle()
    before, decided = judged(world), decisions(world)
    world.lose_ledger()
    copy.rename(world.ledger)
    world.start()
    assert "rebuilding: done" in world.log
    assert decisions(world) == decided
    world.update_and_store(world.uri("c"))
    world.settle()
    after = judged(world, unfolded=CONSUMERS)
    assert len(decisions(world) - decided) == 1, "it goes on as ever"
    assert (after.accepted, after.runs) == (before.accepted + 1, before.runs + 1)
    assert world.log.count("rebuilding: done") == 1


def updates(world: World, count: int, dice: Random) -> None:
    """Updates of tasks, in groups, with the ends of coalesced runs in between; return when all are recorded."""
    before = len(world.recorded())
    for _ in range(count // 5):
        for _ in range(5):
            world.task_recorded(recording(world.uri(dice.choice("abcd"))), events=bool(dice.random() < 0.8))
        world.end_coalesced_runs()
    world.until(lambda: len(world.recorded()) == before + count, 120)


@pytest.mark.failure(
    "The ledger",
    "the ledger is damaged",
    "evaluator and status exit with 2; move it away and [rebuild it](upkeep.md#a-lost-ledger)",
)
def test_the_ledger_is_damaged_and_rebuilt(world: World, judged: Judged) -> None:
    since = datetime.now(UTC)
    storm_without_emit(world, seed=12)
    judged(world)
    decided = decisions(world)
    with world.ledger.open("r+b") as file:
        file.write(os.urandom(4096))
    refused = world.command("evaluator", "start")
    assert refused.returncode == 2
    assert "damaged" in refused.stderr
    assert "--since" in refused.stderr
    status = world.command("status")
    assert status.returncode == 2
    assert "Traceback" not in status.stderr
    for file in world.home.glob("ledger.db*"):
        file.rename(file.with_name(f"damaged-{file.name}"))
    rebuild(world, since)
    judged(world, unfolded=CONSUMERS)
    assert decisions(world) == decided


def decisions(world: World) -> set[UUID]:
    with world.reader() as ledger:
        return {each.id for each in ledger.decisions.find(limit=10_000)}


@pytest.mark.failure(
    "Processes", "`assetflow emit` is killed", "call it again with the same `--id`: both calls are one update"
)
def test_a_writer_killed_in_a_transaction_leaves_the_ledger_whole(world: World, judged: Judged) -> None:
    """`assetflow emit` beside the evaluator, killed at any moment: recorded or not, never half."""
    world.deploy_consumers()
    world.begin()
    for number in range(12):
        command = [sys.executable, "-m", "assetflow", "emit", world.uri("abcd"[number % 4])]
        emit = subprocess.Popen(command, env=world.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            emit.wait(0.4 + number / 5)
        except subprocess.TimeoutExpired:
            emit.kill()
            emit.wait()
    world.settle()
    with closing(sqlite3.connect(world.ledger)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    judged(world)


@pytest.mark.failure("The ledger", "the database refuses one update", "it is kept as refused; all others are recorded")
def test_the_ledger_refuses_one_update(world: World) -> None:
    """It is kept as refused, with the reason; all others go on, and so does an evaluator that is started anew."""
    deployment = world.deploy("one", Asset(world.uri("good")))
    bad, good = world.uri("bad"), world.uri("good")
    world.begin()
    with closing(sqlite3.connect(world.ledger)) as ledger:
        ledger.execute(
            f"CREATE TRIGGER refuse_bad BEFORE INSERT ON event WHEN NEW.uri = '{bad}' "
            "BEGIN SELECT RAISE(ABORT, 'this URI is not wanted'); END"
        )
        ledger.commit()
    world.task_recorded(recording(bad), events=False)
    world.task_recorded(recording(good), events=False)
    world.until(lambda: len(world.runs(deployment)) == 1, 60)
    world.until(lambda: world.status()[1]["refused"] == 1, 60)
    assert "this URI is not wanted" in world.command("events", "ls", "--refused", "--json").stdout
    world.kill()
    world.start()
    world.task_recorded(recording(good), events=False)
    world.until(lambda: len(world.runs(deployment)) == 2, 60)
    world.until(lambda: world.status()[1]["lag"]["updates"] == 0, 60)
    status = world.status()[1]
    assert (status["refused"], status["problems"]) == (1, [])
    assert "Traceback" not in world.log
    world.settle()
    assert [event.uri for event in world.recorded()] == [good, good]
