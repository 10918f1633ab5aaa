"""Messages of five brokers while the process that watches, its connections and the ledger are killed (10.2, 10.3)."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, get_args

import pytest

from assetflow import Asset, AssetWatcher
from assetflow.crash_points import VARIABLE, WatcherPoint
from tests.environment.postgres import closed
from tests.faults import chaos
from tests.faults.brokers import Brokers
from tests.faults.conftest import Judged
from tests.faults.world import PATIENCE, ROOT, World

pytestmark = [
    pytest.mark.faults,
    pytest.mark.prefect,
    pytest.mark.rabbitmq,
    pytest.mark.redis,
    pytest.mark.timeout(1800),
]

MESSAGES = int(os.environ.get("TEST_MESSAGES", "2000"))
AT_ONCE = 20
LONG = 1200
SEED = 5


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    brokers = Brokers()
    yield brokers
    brokers.close()


class Watcher:
    """`assetflow watcher start` as a process that is killed and started again."""

    def __init__(self, world: World, environment: dict[str, str]) -> None:
        self._world = world
        self._env = {**world.env, **environment, "PREFECT_API_URL": world.through}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, crash_at: str = "") -> None:
        command = [sys.executable, "-m", "assetflow", "watcher", "start"]
        with (self._world.home / "watcher.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, env=self._env | {VARIABLE: crash_at}, cwd=ROOT, stdout=log, stderr=log
            )

    def end(self, how: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(60)

    def go_on(self) -> None:
        """Start again if it killed itself, or ended because it could not open the ledger at its start."""
        assert self._process is not None
        if self._process.poll() is not None:
            assert self._process.returncode in (-signal.SIGKILL, 2), self.log
            self.start()

    @property
    def log(self) -> str:
        return (self._world.home / "watcher.log").read_text()[-5000:]


def bodies_of(kind: str, count: int) -> list[bytes]:
    """Return messages, a tenth of which are equal."""
    return [json.dumps({"kind": kind, "number": 0 if number % 10 == 0 else number}).encode() for number in range(count)]


def content_of(extra: Any) -> str:
    """Return what an update says was sent: an entry of a stream is an object of its fields."""
    payload = extra["payload"]
    return json.dumps(payload.get("body", payload), sort_keys=True)


def trouble_of_the_ledger(world: World) -> None:
    """Break all connections to the ledger on Postgres; on SQLite, let somebody else write for three seconds."""
    if world.database is not None:
        with closed(world.database):
            time.sleep(1)
        return
    with closing(sqlite3.connect(world.ledger, isolation_level=None, timeout=30)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        time.sleep(3)
        connection.execute("ROLLBACK")


def blows(world: World, watcher: Watcher, brokers: Brokers, dice: random.Random) -> list[Callable[[], None]]:
    """Return what goes wrong, each kind several times, in an order that the dice decide."""

    def crash(point: str) -> Callable[[], None]:
        def blow() -> None:
            watcher.end(signal.SIGKILL)
            watcher.start(point)
            # It ends itself as soon as there is a message.
            time.sleep(3)

        return blow

    def restart(how: signal.Signals) -> Callable[[], None]:
        def blow() -> None:
            watcher.end(how)
            watcher.start()

        return blow

    found: list[Callable[[], None]] = [
        *(crash(point) for point in get_args(WatcherPoint)),
        *(restart(how) for how in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)),
        *brokers.cuts,
        *brokers.cuts,
        *(lambda: trouble_of_the_ledger(world) for _ in range(3)),
        *(lambda: chaos.kill_evaluator(world, dice) for _ in range(2)),
    ]
    dice.shuffle(found)
    return found


def deploy(world: World, brokers: Brokers) -> None:
    """Deploy a flow that runs for each message of a queue, and flows that wait for several queues."""
    assets = {
        kind: Asset(world.uri(kind), watchers=[AssetWatcher(f"{kind}-{world.mark}", trigger)])
        for kind, trigger in brokers.triggers.items()
    }
    world.deploy("each", assets["rabbitmq"])
    world.deploy("both", assets["list"] & assets["kafka"])
    world.deploy("all", assets["sqs"] & assets["list"] & assets["stream"])


def contents(world: World) -> Counter[str]:
    return Counter(content_of(event.extra) for event in world.recorded())


def waiting(world: World) -> bool:
    """Return True if a decision waits for its run. Prefect on a busy machine makes one a second."""
    with world.reader() as reader:
        return bool(reader.status().waiting)


@pytest.mark.failure(
    "Processes",
    "the process that watches is killed again and again, its connections are cut, the ledger is locked",
    "`assetflow watchers ls`: `failing: …`, until it is connected again. Without a ledger at its start it exits with 2",
)
@pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
def test_two_thousand_messages_in_a_storm(world: World, brokers: Brokers, judged: Judged) -> None:
    deploy(world, brokers)
    world.begin()
    watcher, dice = Watcher(world, brokers.environment), random.Random(SEED)
    watcher.start()
    ahead = blows(world, watcher, brokers, dice)
    try:
        sent = send_in_a_storm(brokers, watcher, ahead, dice)
        world.until(lambda: len(world.recorded()) >= MESSAGES or watcher.go_on(), PATIENCE)
        world.until(lambda: brokers.left() == 0 or watcher.go_on(), PATIENCE)
    finally:
        watcher.end(signal.SIGTERM)
    assert len(sent) == MESSAGES
    assert contents(world) == Counter(json.dumps(json.loads(each), sort_keys=True) for each in sent), watcher.log
    world.until(lambda: not waiting(world), LONG)
    world.settle()
    judged(world)


def send_in_a_storm(
    brokers: Brokers, watcher: Watcher, ahead: Sequence[Callable[[], None]], dice: random.Random
) -> list[bytes]:
    """Send all messages, and strike a blow after each few. Return what the brokers have confirmed."""
    kinds = list(brokers.triggers)
    waiting = {kind: bodies_of(kind, MESSAGES // len(kinds)) for kind in kinds}
    remaining, sent = list(ahead), list[bytes]()
    while any(waiting.values()) or remaining:
        for kind in kinds:
            some, waiting[kind] = waiting[kind][:AT_ONCE], waiting[kind][AT_ONCE:]
            if some:
                brokers.send(kind, some)
                sent += some
        time.sleep(dice.uniform(0.2, 2))
        watcher.go_on()
        if remaining:
            remaining.pop(0)()
    return sent
