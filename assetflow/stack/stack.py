"""The whole stack: start its processes in order, restart those that end, stop them in reverse order."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import IO, cast

import httpx

from assetflow.errors import (
    AssetflowError,
    InvalidProject,
    JavaNotFound,
    PrefectRefused,
    PrefectUnauthorized,
    StackFailed,
)
from assetflow.settings import make_private_folder
from assetflow.stack import deploying, prefect_server
from assetflow.stack.calls import PrefectCalls
from assetflow.stack.environment import StackEnvironment, StackProcess, choose_port
from assetflow.stack.flow_files import Json, Project, read_project, source_files

SERVER_SECONDS = 120.0
KNOWN_SECONDS = "150"
# A command that writes nothing for so long has got stuck.
SILENT_SECONDS = 180.0
RESTART_SECONDS = 1.0
# What ends a stack: Ctrl-C, `kill`, and a terminal that is closed.
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Tell = Callable[[str], None]


class Stack:
    """Prefect, the evaluator with API and pages, the watchers, and a worker for each work pool of one project.

    A context manager that starts them all, and stops them at the end.

    Parameters:
        environment: the folders, ports and variables.
        tell: called with a line for each step.
        fresh: empty the stack's folder first.
    """

    def __init__(self, environment: StackEnvironment, tell: Tell, *, fresh: bool = False) -> None:
        self.environment = environment
        self._tell = tell
        self._fresh = fresh
        self._lock: IO[str] | None = None
        self.server = self._process("Prefect server", [sys.executable, "-m", prefect_server.__name__])
        start = _assetflow("server", "start", "--port", str(environment.pages_port))
        self.evaluator = self._process("evaluator", start)
        self.watchers = self._process("watchers", _assetflow("watcher", "start"))
        # For each work pool of the project, the process of its worker.
        self._workers: dict[str, StackProcess] = {}
        # This process ends when Spark's server has warmed up; an earlier flow run waits for the server by itself.
        self.spark = self._process("Spark", _assetflow("spark", "start"))

    @property
    def workers(self) -> list[StackProcess]:
        return [*self._workers.values()]

    def __enter__(self) -> Stack:
        project = read_project(self.environment.project)
        make_private_folder(self.environment.home)
        self._take_lock()
        if self._fresh:
            empty(self.environment.home)
        self.environment.write_shell_file()
        try:
            # Before anything is started, the flows of the project are loaded.
            self._load(project, "check")
            self._start(project)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, project: Project) -> None:
        self._tell("Starting the Prefect server")
        self._start_server()
        if self.environment.has_spark_server:
            self._start_spark()
        self._make_pools(project.pools)
        self._tell("Deploying the flows of prefect.yaml")
        self._start_process(self.evaluator)
        self._deploy(project)
        self._tell("Waiting until the evaluator knows the deployments")
        self._wait_until_known()
        # Only now: of the times that were missed since the last stop, the evaluator has skipped what it may.
        self._start_workers(project.pools)
        self._start_process(self.watchers)

    def _start_server(self) -> None:
        """Start Prefect's server and wait until it answers.

        Raises:
            PortInUse: another process has taken the port since it was chosen.
            StackFailed: the server ended, or was not ready in time.
        """
        self._start_process(self.server)
        try:
            self.server.wait_until(self._server_answers, SERVER_SECONDS)
        except StackFailed as error:
            if self.server.exit_code is None:
                raise
            choose_port(self.environment.port)
            empty = f"to start from nothing, without its history, delete {self.environment.home}"
            raise StackFailed(error.message, fix=f"{error.fix}; {empty}", output=error.output) from error

    def _start_spark(self) -> None:
        """Start Spark's server. Without Java, print a warning, and let the flows run that do not need Spark."""
        try:
            self.environment.check_java()
        except JavaNotFound as error:
            self._tell(f"Tasks on Spark will fail: {error}")
        else:
            self._start_process(self.spark)

    def _make_pools(self, pools: Sequence[str]) -> None:
        with PrefectCalls(self.environment.api_url) as calls:
            for pool in pools:
                try:
                    calls.make_pool(pool)
                except (PrefectRefused, PrefectUnauthorized) as error:
                    raise InvalidProject(
                        f"Prefect does not accept a work pool with this name: {pool!r}",
                        where="prefect.yaml",
                        fix="Choose another name, of letters, digits and dashes, that does not begin with `prefect`",
                    ) from error

    def _start_workers(self, pools: Sequence[str]) -> None:
        """Start a worker for each of these pools that has none."""
        for pool in pools:
            if pool not in self._workers:
                name = f"worker {len(self._workers) + 1}" if self._workers else "worker"
                command = [sys.executable, "-m", "prefect", "worker", "start", f"--pool={pool}"]
                self._workers[pool] = self._process(name, command)
                self._start_process(self._workers[pool])

    def _wait_until_known(self) -> None:
        wait = _assetflow("consumers", "wait", "--timeout", KNOWN_SECONDS)
        self._run(wait, "consumers wait", "assetflow consumers wait")

    def _deploy(self, project: Project) -> None:
        """Deploy the project's flows. On a slow machine this takes minutes; it fails only if nothing moves any more.

        Raises:
            InvalidProject: a flow cannot be loaded.
            StackFailed: Prefect refuses a deployment, or nothing has been written for `SILENT_SECONDS`.
        """
        file = self.environment.home / "deploy.yaml"
        project.write_completed(file)
        self._load(project, "prefect deploy --all", "--deploy", str(file))

    def _load(self, project: Project, what: str, *options: str) -> None:
        problem = self.environment.home / "problem.json"
        problem.unlink(missing_ok=True)
        entrypoints = [each.entrypoint for each in project.deployments]
        module = [sys.executable, "-m", deploying.__name__]
        try:
            self._run([*module, str(problem), *options, *entrypoints], "deploy", what)
        except StackFailed:
            if not problem.exists():
                raise
            found = json.loads(problem.read_text())
            raise InvalidProject(found["error"], where=found["where"], fix=found["fix"]) from None

    def deploy(self) -> None:
        """Deploy the project's flows as they are now, and wait until the evaluator knows them.

        A work pool that is new gets a worker.
        """
        project = read_project(self.environment.project)
        self._make_pools(project.pools)
        self._deploy(project)
        self._wait_until_known()
        self._start_workers(project.pools)

    def stop(self) -> None:
        """Stop all processes of the stack, and its shared Spark server. Signals do not interrupt this."""
        with _uninterrupted():
            # The terminal may be closed.
            with contextlib.suppress(OSError):
                self._tell("Stopping the stack")
            for process in (self.watchers, *self.workers, self.evaluator, self.server):
                process.stop()
            if self.spark.pid and self.spark.exit_code is None:
                self.spark.stop()
            self._stop_spark_server()
            if self._lock is not None:
                self._lock.close()
                self._lock = None

    def _stop_spark_server(self) -> None:
        """Stop this stack's local Spark server, if there is one: here, as another process would need time to start."""
        if self.environment.spark_server_file.exists():
            from assetflow.spark.connect import stop_recorded_server

            stop_recorded_server(self.environment.spark_server_file)

    def watch(self, over: threading.Event | None = None, *, reload: bool = False) -> None:
        """Restart processes that end on their own, until `over` is set or, without it, the caller is interrupted.

        Parameters:
            over: ends the watching.
            reload: True to deploy the flows again whenever a file of the project has changed.
        """
        over = over or threading.Event()
        deployed = seen = source_files(self.environment.project)
        while not over.wait(RESTART_SECONDS):
            for process in (self.server, self.evaluator, self.watchers, *self.workers):
                if process.exit_code is not None:
                    self._tell(f"The {process.name} ended with exit code {process.exit_code}; starting it again")
                    self._start_process(process)
            # Wait until two looks find the same: an editor may still be writing.
            before, seen = seen, source_files(self.environment.project) if reload else seen
            if seen == before != deployed:
                self._reload()
                deployed = seen

    def _reload(self) -> None:
        self._tell("The project has changed: deploying its flows again")
        try:
            self.deploy()
        except AssetflowError as error:
            self._tell(f"Nothing was deployed, and what was deployed before stays: {error}")
        else:
            self._tell("Deployed")

    @contextlib.contextmanager
    def watched(self) -> Generator[None]:
        """Restart processes that end on their own while the block runs."""
        over = threading.Event()
        watching = threading.Thread(target=self.watch, args=(over,), name="watching", daemon=True)
        watching.start()
        try:
            yield
        finally:
            over.set()
            watching.join()

    def _start_process(self, process: StackProcess) -> None:
        process.start()
        self._note_pids()

    def _process(self, name: str, argv: list[str]) -> StackProcess:
        log = self.environment.logs / f"{name.lower().replace(' ', '-')}.log"
        return StackProcess(name, argv, self.environment.processes_env, self.environment.project, log)

    def _server_answers(self) -> bool:
        """True if this stack's own server answers: another program, or another Prefect, may have taken the port."""
        try:
            # The server is on this machine, without TLS: loading the certificates would take most of the time.
            answer = httpx.get(f"{self.environment.api_url}/admin/settings", timeout=2, verify=False)
            said: object = answer.json() if answer.status_code == 200 else None
        except (httpx.HTTPError, ValueError):
            return False
        return isinstance(said, dict) and cast(Json, said).get("home") == self.environment.variables["PREFECT_HOME"]

    def _run(self, argv: list[str], name: str, what: str) -> None:
        """Run a command of the stack to its end. It may take long, if it keeps writing to its log.

        Raises:
            StackFailed: it failed, or wrote nothing for `SILENT_SECONDS`; the error has the end of its log.
        """
        command = self._process(name, argv)
        command.start()
        try:
            code = command.wait(SILENT_SECONDS)
        finally:
            command.stop()
        if code is None:
            raise command.failure(f"{what} has written nothing for {SILENT_SECONDS:.0f} s, and was stopped")
        if code:
            raise command.failure(f"{what} failed with exit code {code}")

    def _take_lock(self) -> None:
        """Take the lock of the stack's folder, then stop the processes that a killed stack left behind."""
        lock = self.environment.state_file.open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise StackFailed(
                f"a stack already runs in {self.environment.home}", fix="Use it, or stop it with Ctrl-C in its terminal"
            ) from None
        self._lock = lock
        self._stop_leftovers()

    def _stop_leftovers(self) -> None:
        """Stop the processes of a stack whose own process was killed."""
        assert self._lock is not None
        self._lock.seek(0)
        text = self._lock.read()
        left: list[int] = json.loads(text)["pids"] if text else []
        for pid in left:
            # The pid may belong to another process by now.
            command = subprocess.run(
                ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
            )
            if any(module in command.stdout for module in (" -m prefect ", " -m assetflow")):
                self._tell(f"Stopping process {pid}, left behind by a stack that was killed")
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
        if left:
            self._stop_spark_server()

    def _note_pids(self) -> None:
        assert self._lock is not None
        processes = (self.server, self.evaluator, *self.workers, self.watchers, self.spark)
        pids = [process.pid for process in processes if process.pid]
        self._lock.truncate(0)
        ports = {"port": self.environment.port, "pages_port": self.environment.pages_port}
        self._lock.write(json.dumps({"pids": pids, **ports}))
        self._lock.flush()


@contextlib.contextmanager
def _uninterrupted() -> Generator[None]:
    """Ignore Ctrl-C, SIGTERM and the end of the terminal during the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def empty(home: Path) -> None:
    """Delete the files of an earlier stack from a folder, except the lock file."""
    for entry in home.iterdir():
        if entry.name == "stack.json":
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _assetflow(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "assetflow", *arguments]
