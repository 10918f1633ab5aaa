"""Processes of a warm worker are killed at drawn moments: no flow run is lost, none runs twice or for ever."""

import os
import random
import shlex
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from assetflow.worker.taken_runs import SECONDS_TO_BEGIN
from tests.environment.prefect_server import PrefectServer
from tests.environment.waiting import until
from tests.worker.conftest import is_running
from tests.worker.pool import ENDED, OWN_COMMAND, Pool

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(900)]

RUNS = 12
SECONDS_TO_END = 2 * SECONDS_TO_BEGIN
FLOW = """
import time
from prefect import flow

@flow
def report(name):
    with open(name, "a") as file:
        file.write("began ")
    time.sleep(1)
    with open(name, "a") as file:
        file.write("ended ")
"""
# Who is killed, and since when there is something to kill.
VICTIMS = {
    "template": (Pool.templates, Pool.children),
    "child": (Pool.children, Pool.children),
    "client": (Pool.clients, Pool.clients),
}


@pytest.fixture
def pool(own_server: PrefectServer, tmp_path: Path) -> Iterator[Pool]:
    pool = Pool(own_server, tmp_path)
    pool.write(FLOW)
    yield pool
    pool.close()


def kill(pool: Pool, victim: str, run: str, dice: random.Random) -> None:
    """Kill one such process at a drawn moment of a flow run, if it was forked.

    The first run after the end of a template is not, and ends while the next template starts.
    """
    victims, since = VICTIMS[victim]
    pool.until(lambda: since(pool) or pool.state(run) in ENDED)
    if since(pool):
        time.sleep(dice.uniform(0, 1.5))
        _kill(victims(pool)[:1])
    else:
        pool.until(pool.listens)


def stop(pid: int) -> None:
    """Stop a process, and return when it has stopped."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")


def waiting_run(pool: Pool) -> tuple[int, int, dict[str, str]]:
    """Order a run whose client waits for a template that stands still; return both processes, and the run."""
    (template,) = pool.templates()
    stop(template)
    runs = {"run": pool.order(name="run")}
    pool.until(pool.clients)
    client = pool.clients()[0]
    pool.until(lambda: _waits_for_the_template(client))
    return template, client, runs


def replace_worker(pool: Pool) -> None:
    """Wait for the end of a worker that was killed, and start another one."""
    pool.workers[-1].wait()
    pool.start_worker()


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def judge(pool: Pool, runs: dict[str, str]) -> list[str]:
    """Return how the runs ended: each began at most once, and those that completed exactly once."""
    states: list[str] = []
    for name, run in runs.items():
        states.append(pool.ended(run, SECONDS_TO_END))
        file = pool.home / name
        noted = file.read_text() if file.exists() else ""
        assert noted == "began ended " if states[-1] == "COMPLETED" else noted in ("", "began ", "began ended "), name
    pool.until(lambda: not pool.clients() and not pool.children())
    assert set(states) <= {"COMPLETED", "CRASHED"}, states
    return states


@pytest.mark.failure(
    "Processes",
    "the template, the child or the client of a warm worker's run is killed",
    "the run is Crashed or completes, and begins at most once",
)
@pytest.mark.parametrize("victim", VICTIMS)
def test_each_run_ends_and_began_at_most_once(pool: Pool, victim: str) -> None:
    dice = random.Random(victim)
    runs: dict[str, str] = {}
    for number in range(RUNS):
        run = runs[f"run{number}"] = pool.order(name=f"run{number}")
        kill(pool, victim, run, dice)
    assert "CRASHED" in judge(pool, runs)
    assert judge(pool, {"last": pool.order(name="last")}) == ["COMPLETED"]


@pytest.mark.failure(
    "Processes",
    "a warm worker is killed, with or without its flow runs",
    "runs without a process are Crashed, or Scheduled again if they had not begun, as soon as another worker of the "
    "pool sees to them",
)
@pytest.mark.parametrize("command", [None, OWN_COMMAND], ids=["forked", "with a command"])
@pytest.mark.parametrize("power", [False, True], ids=["worker", "power"])
def test_the_runs_of_a_killed_worker_end_when_there_is_another_one(
    pool: Pool, power: bool, command: str | None
) -> None:
    dice = random.Random(power)
    deployment = pool.deploy("flows.py:report", command=command)
    runs: dict[str, str] = {}
    for number in range(RUNS // 2):
        for each in "ab":
            runs[f"run{number}{each}"] = pool.order(deployment, name=f"run{number}{each}")
        pool.until(lambda name=f"run{number}a": pool.state(runs[name]) != "SCHEDULED")
        time.sleep(dice.uniform(0, 2))
        _kill([*(_processes(pool, runs) if power else ()), pool.workers[-1].pid])
        replace_worker(pool)
    judge(pool, runs)


def _processes(pool: Pool, runs: dict[str, str]) -> list[int]:
    return [process for run in runs.values() if (process := pool.process_of(run))]


WAITS = """
import time
from pathlib import Path
from prefect import flow

@flow
def report(name):
    with open(name, "a") as file:
        file.write("began ")
    while not Path("end").exists():
        time.sleep(0.05)
    with open(name, "a") as file:
        file.write("ended ")
"""


@pytest.mark.failure(
    "Processes",
    "a warm worker is killed, and the run has a `command` of its own",
    "the run continues; without a process it is Crashed",
)
@pytest.mark.parametrize("killed", ["before its flow begins", "while its flow runs"])
def test_a_run_with_a_command_of_its_own_outlives_its_worker_or_crashes(pool: Pool, killed: str) -> None:
    """One process is killed with the worker, one later, and one goes on for longer than a run is waited for."""
    start, end = pool.home / "start", pool.home / "end"
    pool.write(WAITS)
    # Prefect's log ends a process that cannot write to its worker any more.
    script = f"until [ -e {start} ]; do sleep 0.05; done; exec {OWN_COMMAND} >{pool.home}/output 2>&1"
    deployment = pool.deploy("flows.py:report", command=shlex.join(["sh", "-c", script]))
    runs = {name: pool.order(deployment, name=name) for name in ("with", "later", "not")}
    processes = {name: until(lambda run=run: pool.process_of(run)) for name, run in runs.items()}
    if killed == "while its flow runs":
        start.touch()
        pool.until(lambda: all((pool.home / name).exists() for name in runs))
    _kill([pool.process.pid, processes["with"]])
    replace_worker(pool)
    assert pool.ended(runs["with"], SECONDS_TO_END) == "CRASHED"
    _kill([processes["later"]])
    assert pool.ended(runs["later"], SECONDS_TO_END) == "CRASHED"
    start.touch()
    end.touch()
    assert judge(pool, runs) == ["CRASHED", "CRASHED", "COMPLETED"]


@pytest.mark.failure("Processes", "the template, the child or the client of a warm worker's run is killed")
def test_two_workers_start_each_run_once_while_their_processes_are_killed(pool: Pool) -> None:
    pool.start_worker()
    pool.until(lambda: len(pool.sockets()) == 2)
    dice = random.Random(2)
    runs: dict[str, str] = {}
    for number in range(2 * RUNS):
        run = runs[f"run{number}"] = pool.order(name=f"run{number}")
        if number % 2:
            kill(pool, dice.choice([*VICTIMS]), run, dice)
    assert "COMPLETED" in judge(pool, runs)


# How a run ends whose process is killed while its client waits for the template.
KILLED_BEFORE_IT_BEGINS = {"template": "COMPLETED", "client": "CRASHED", "worker": "COMPLETED"}


@pytest.mark.failure("Processes", "the template, the child or the client of a warm worker's run is killed")
@pytest.mark.parametrize("victim", KILLED_BEFORE_IT_BEGINS)
def test_what_is_killed_before_the_template_accepts(pool: Pool, victim: str) -> None:
    template, client, runs = waiting_run(pool)
    _kill([{"template": template, "client": client, "worker": pool.process.pid}[victim]])
    if victim == "worker":
        replace_worker(pool)
    if victim != "template":
        os.kill(template, signal.SIGCONT)
    assert judge(pool, runs) == [KILLED_BEFORE_IT_BEGINS[victim]]
    assert judge(pool, {"last": pool.order(name="last")}) == ["COMPLETED"]


@pytest.mark.failure("Processes", "the template, the child or the client of a warm worker's run is killed")
@pytest.mark.parametrize("victim", [*KILLED_BEFORE_IT_BEGINS, "child"])
def test_what_is_killed_between_the_fork_and_the_word_to_begin(pool: Pool, victim: str) -> None:
    template, client, runs = waiting_run(pool)
    # It does not hear that the child exists, so the child waits.
    stop(client)
    os.kill(template, signal.SIGCONT)
    pool.until(pool.children)
    child = pool.children()[0]
    _kill([{"template": template, "client": client, "worker": pool.process.pid, "child": child}[victim]])
    if victim == "worker":
        replace_worker(pool)
    if victim in ("template", "child"):
        until(lambda: not is_running(child))
    if victim == "template":
        # As long as one of its threads exists, the client's connection does.
        until(lambda: not _threads(template))
    if victim != "client":
        os.kill(client, signal.SIGCONT)
    ended = judge(pool, runs)
    # Without its child, the client does the work itself, unless it says "begin" before the template has noticed.
    assert ended == [KILLED_BEFORE_IT_BEGINS.get(victim)] or victim == "child"
    assert judge(pool, {"last": pool.order(name="last")}) == ["COMPLETED"]


def _threads(process: int) -> list[int]:
    """Return the threads of a process that have not ended."""
    with suppress(FileNotFoundError):
        threads = [int(each.name) for each in Path(f"/proc/{process}/task").iterdir()]
        return [each for each in threads if is_running(each)]
    return []


def _waits_for_the_template(client: int) -> bool:
    """Return True if a client has connected and waits in the kernel."""
    with suppress(OSError):
        sockets = [each for each in Path(f"/proc/{client}/fd").iterdir() if str(each.readlink()).startswith("socket:")]
        return bool(sockets) and Path(f"/proc/{client}/stat").read_text().rpartition(")")[2].split()[0] == "S"
    return False


SLOW = """
import time
from pathlib import Path

Path("imports").touch()
while not Path("gate").exists():
    time.sleep(0.05)
"""


@pytest.mark.failure("Processes", "the template, the child or the client of a warm worker's run is killed")
def test_a_template_that_is_killed_while_it_imports_is_replaced(pool: Pool) -> None:
    (pool.home / "slow.py").write_text(SLOW)
    deployment = pool.deploy("flows.py:report", preload=["slow"])
    runs = {"first": pool.order(deployment, name="first")}
    pool.until((pool.home / "imports").exists)
    (importing,) = set(pool.templates()) - {pool.template()}
    _kill([importing])
    (pool.home / "gate").touch()
    runs["second"] = pool.order(deployment, name="second")
    assert judge(pool, runs) == ["COMPLETED", "COMPLETED"]
    pool.until(lambda: set(pool.templates()) - {pool.template(), importing})
