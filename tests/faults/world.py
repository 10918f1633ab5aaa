"""The real stack as separate processes that can be killed: a Prefect server, an evaluator, producers, a worker.

Consumers are deployments whose runs nobody executes; those of the coalescing one are ended through the API.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import httpx

from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.errors import LedgerError
from assetflow.ledger import Reader
from assetflow.prefect_io.names import ASSET_UPDATED, LEDGER_VARIABLE, MATERIALIZATION_SUCCEEDED
from tests.environment.posting import posted_update
from tests.environment.prefect_server import PrefectServer
from tests.faults.worker import Worker
from tests.integration.installation import Installation

Kind = Literal["task", "materialize", "emit", "post"]

PRODUCER = Path(__file__).with_name("producer.py")
ROOT = Path(__file__).parents[2]
PAGE = 200
BATCH = 100
PATIENCE = 400
COALESCING = "coalesced"
CONSUMERS = ("both", "either", "nested", "aliased", "partitioned", COALESCING)
ENDED = {"state": {"type": "COMPLETED", "name": "Completed"}, "force": True}


class World(Installation):
    """One server, one ledger, one evaluator, consumers of every kind, and producers.

    Parameters:
        server: a server of the world's own: it may be killed.
        home: an empty folder for the ledger and the producers' notes.
        through: the address by which the evaluator reaches Prefect, if there is something in between.
        ledger: the ledger's file, if it is not in `home`.
        database: the ledger's address, if it is no file.
    """

    def __init__(
        self,
        server: PrefectServer,
        home: Path,
        *,
        through: str | None = None,
        ledger: Path | None = None,
        database: str | None = None,
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        super().__init__(server, home)
        self.http.timeout = httpx.Timeout(90)
        self.through = through or server.api_url
        self.producers: list[Producer] = []
        self.others: list[subprocess.Popen[bytes]] = []
        self.worker: Worker | None = None
        self.env = server.env | {"ASSETFLOW_HOME": str(home), "PREFECT_LOGGING_LEVEL": "ERROR"}
        self.ledger = ledger or home / "ledger.db"
        self.database = database
        if database is not None:
            self.env["ASSETFLOW_DATABASE_URL"] = database
        elif ledger is not None:
            self.env["ASSETFLOW_DATABASE_URL"] = f"sqlite:///{ledger}"

    def uri(self, name: str) -> str:
        return f"s3://faults-{self.mark}/{name}"

    def deploy_consumers(self) -> None:
        """Consumers with AND, OR, nesting, an alias, a partition and `coalesce`."""
        a, b, c, d, p, q = (Asset(self.uri(name)) for name in "abcdpq")
        self.deploy("both", a & b)
        self.deploy("either", c | d)
        self.deploy("nested", a | (b & c))
        self.deploy("aliased", AssetAlias(f"alias-{self.mark}"))
        self.deploy("partitioned", PartitionedAssetTimetable(assets=p & q))
        self.deploy(COALESCING, b | d, coalesce=True)

    def reader(self) -> Reader:
        return Reader.open(self.database or self.ledger)

    def wait_for_consumers(self) -> None:
        self.until(self._has_ledger, PATIENCE)
        super().wait_for_consumers()

    def _has_ledger(self) -> bool:
        try:
            self.reader().close()
        except LedgerError:
            return False
        return True

    def lose_ledger(self) -> None:
        """Delete the ledger's files."""
        for file in self.home.glob("ledger.db*"):
            file.unlink()

    def copy_of_ledger(self) -> Path:
        """Copy the ledger as it is now, and return where the copy is."""
        copy = self.home / "copy.db"
        with closing(sqlite3.connect(self.ledger)) as database, closing(sqlite3.connect(copy)) as backup:
            database.backup(backup)
        return copy

    # The evaluator

    def start(
        self,
        *arguments: str,
        crash_at: str = "",
        ready: bool = True,
        program: Sequence[str] = ("-m", "assetflow", "evaluator", "start"),
    ) -> subprocess.Popen[bytes]:
        # What one that was killed left behind says nothing about this one.
        (self.home / "evaluator.json").unlink(missing_ok=True)
        env = self.env | {"PREFECT_API_URL": self.through, "ASSETFLOW_CRASH_AT": crash_at}
        command = [sys.executable, *program, *arguments]
        with (self.home / "evaluator.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, env=env, cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        if ready:
            self.until(self._is_ready)
        return self._process

    def start_another(self) -> subprocess.Popen[bytes]:
        """One more evaluator on the same ledger, which stands by; it is not `evaluator`."""
        before = self._process
        self.others.append(self.start(ready=False))
        self._process = before
        return self.others[-1]

    @property
    def evaluator(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def terminate(self) -> None:
        self.evaluator.terminate()
        assert self.evaluator.wait(30) == 0, self.log

    def freeze(self) -> None:
        self.evaluator.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.evaluator.send_signal(signal.SIGCONT)

    def settle(self) -> None:
        """Work off everything that is left, the runs that `coalesce` waits for included."""
        if self._coalescing:
            if self._process is None or self._process.poll() is not None:
                self.start(ready=False)
            self.until(self._is_quiet, PATIENCE)
        self._work_off()
        if self.end_coalesced_runs():
            self.settle()

    def wait_for_marks(self) -> None:
        """Wait until the evaluator has noted each run that it started: Prefect shows a run before its mark is there."""
        if self._process is not None and self._process.poll() is None:
            self.until(self._has_all_marks, PATIENCE)

    def _has_all_marks(self) -> bool:
        with self.reader() as ledger:
            return not ledger.status().waiting

    def _is_quiet(self) -> bool:
        """Whether no decision waits for its run, and no run is there for `coalesce` to wait for."""
        if self.end_coalesced_runs():
            return False
        try:
            with self.reader() as ledger:
                busy = [each for each in ledger.decisions.running() if each.consumer_name.endswith(COALESCING)]
                return not busy and not ledger.status().waiting
        except LedgerError:
            return False  # It is just being made.

    def _work_off(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(60)
        assert self.start("--once", ready=False).wait(PATIENCE) == 0, self.log[-5000:]

    def status(self) -> tuple[int, dict[str, Any]]:
        """What `assetflow status --json` says, and its exit status."""
        done = self.command("status", "--json")
        return done.returncode, json.loads(done.stdout)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """An `assetflow` command, as a person calls it here."""
        command = [sys.executable, "-m", "assetflow", *arguments]
        env = self.env | {"PREFECT_API_URL": self.through}
        return subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)

    # Producers

    def produce(self, kind: Kind, count: int, seed: int, crash_at: str = "") -> Producer:
        """A process that makes updates; it can be killed and started again until it has made them all."""
        producer = Producer(self, kind, count, seed)
        producer.start(crash_at)
        self.producers.append(producer)
        return producer

    def employ(self) -> Worker:
        """A worker of Prefect's that executes flow runs which update assets."""
        self.worker = Worker(self)
        self.worker.start()
        return self.worker

    def produced(self) -> bool:
        """Whether all producers have made all of their updates; those that were killed go on."""
        for producer in self.producers:
            producer.go_on()
        return all(producer.is_done for producer in self.producers)

    def end_coalesced_runs(self) -> int:
        """Let the runs that wait in Prefect for the coalescing consumer have ended; how many these were."""
        deployments = self._coalescing
        waiting = [run for each in deployments for run in self.runs(each) if run["state_type"] != "COMPLETED"]
        for run in waiting:
            self.post(f"/flow_runs/{run['id']}/set_state", ENDED)
        return len(waiting)

    @property
    def _coalescing(self) -> list[str]:
        return [number for number, name in self.deployments.items() if name.endswith(COALESCING)]

    def pages(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        """All that Prefect lists under a path."""
        found: list[dict[str, Any]] = []
        while True:
            page = self.post(path, {**body, "limit": PAGE, "offset": len(found)})
            found += page
            if len(page) < PAGE:
                return found

    def close(self) -> None:
        for producer in self.producers:
            producer.kill()
        if self.worker is not None:
            self.worker.close()
        for process in (self._process, *self.others):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        with suppress(httpx.HTTPError):
            self.remove_deployments()
            # The next world is another ledger.
            self.http.delete(f"/variables/name/{LEDGER_VARIABLE}")
        self.http.close()

    def recorded(self) -> list[AssetEvent]:
        """This world's events, by sequence; a server's earlier worlds may have been replayed too."""
        with self.reader() as ledger:
            return [event for event in ledger.events.find() if self.mark in event.uri]

    def update_and_store(self, uri: str) -> None:
        """Post an update, and wait until Prefect's event log has it: Prefect writes it some time after its answer."""
        before = len(self.stored())
        self.update(uri)
        self.until(lambda: len(self.stored()) > before)

    def stored(self) -> list[dict[str, Any]]:
        """The updates of this world's assets in Prefect's event log, oldest first."""
        page = self.post("/events/filter", {"filter": updates_filter(), "limit": 50})
        found = page["events"]
        while page.get("next_page"):
            page = self.http.get(page["next_page"]).raise_for_status().json()
            found += page["events"]
        return [event for event in found if self.mark in event["resource"]["prefect.resource.id"]]


def updates_filter() -> dict[str, Any]:
    """Asks Prefect's event log for updates, those of producers whose clocks are ahead too."""
    now = datetime.now(UTC)
    return {
        "event": {"name": [ASSET_UPDATED, MATERIALIZATION_SUCCEEDED]},
        "occurred": {"since": (now - timedelta(days=7)).isoformat(), "until": (now + timedelta(days=1)).isoformat()},
        "order": "ASC",
    }


class Producer:
    """One producer process, and what it notes: one line for each update that it tried and each that was accepted."""

    def __init__(self, world: World, kind: Kind, count: int, seed: int) -> None:
        self.kind = kind
        self.notes = world.home / f"{kind}-{seed}.notes"
        self._arguments = [kind, str(count), str(seed), world.mark, str(self.notes)]
        self._env = world.env
        self._log = world.home / "producers.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, crash_at: str = "") -> None:
        command = [sys.executable, str(PRODUCER), *self._arguments]
        env = self._env | {"ASSETFLOW_CRASH_AT": crash_at, "PYTHONPATH": str(ROOT)}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    @property
    def is_done(self) -> bool:
        return self.process.poll() == 0

    def go_on(self) -> None:
        """Start again if it was killed."""
        if self.process.poll() is not None and not self.is_done:
            assert self.process.returncode == -signal.SIGKILL, self._log.read_text()[-3000:]
            self.start()

    def kill(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)
            self.process.kill()
            self.process.wait()


def accepted_notes(world: World) -> list[str]:
    """The tokens of the updates that the world's producers were told are recorded."""
    notes = [json.loads(line) for each in world.producers for line in each.notes.read_text().splitlines()]
    told = [note["accepted"] for note in notes if "accepted" in note]
    return told if world.worker is None else told + world.worker.accepted


# Updates that somebody posts to Prefect as events, many at a time


def event(uri: str, occurred: datetime, **extra: Any) -> dict[str, Any]:
    return posted_update(uri, occurred, extra=extra)


def post_all(world: World, events: list[dict[str, Any]]) -> None:
    """Post events, and return when Prefect's log has them."""
    before = _in_log(world)
    for start in range(0, len(events), BATCH):
        world.post("/events", events[start : start + BATCH])
    world.until(lambda: _in_log(world) >= before + len(events), 300)


def _in_log(world: World) -> int:
    return world.post("/events/filter", {"filter": updates_filter(), "limit": 1})["total"]
