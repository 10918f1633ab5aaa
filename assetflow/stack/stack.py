"""The stack as a whole: started in order, watched, stopped in reverse."""

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
from collections.abc import Callable, Generator
from pathlib import Path
from types import TracebackType
from typing import IO

import httpx

from assetflow.errors import StackFailed
from assetflow.stack.calls import PrefectCalls
from assetflow.stack.environment import POOL, StackEnvironment
from assetflow.stack.process import StackProcess

SERVER_SECONDS = 120.0
READY_SECONDS = 60.0
COMMAND_SECONDS = 180.0
RESTART_SECONDS = 1.0

Tell = Callable[[str], None]


class Stack:
    """Prefect, the evaluator with API and pages, and a worker of one project; a context manager that stops them all.

    Parameters:
        environment: folders, ports and variables.
        tell: is called with a line for each step.
        fresh: empty the stack's folder first.
    """

    def __init__(self, environment: StackEnvironment, tell: Tell, *, fresh: bool = False) -> None:
        self.environment = environment
        self._tell = tell
        self._fresh = fresh
        self._lock: IO[str] | None = None
        self.server = self._process("Prefect server", _prefect("server", "start"))
        start = _assetflow("server", "start", "--port", str(environment.pages_port))
        self.evaluator = self._process("evaluator", start)
        self.worker = self._process("worker", _prefect("worker", "start", "--pool", POOL, "--type", "process"))
        # Ends when Spark's server has warmed up; a flow run that comes earlier waits for the server by itself.
        self.spark = self._process("Spark", _assetflow("spark", "start"))

    def __enter__(self) -> Stack:
        self.environment.home.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        if self._fresh:
            empty(self.environment.home)
        self.environment.write_shell_file()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self) -> None:
        self._tell("Starting the Prefect server")
        self._start_process(self.server)
        self.server.wait_until(self._server_answers, SERVER_SECONDS)
        if self.environment.has_spark_server:
            self._start_process(self.spark)
        with PrefectCalls(self.environment.api_url) as calls:
            calls.make_pool(POOL)
        self._tell("Deploying the flows of prefect.yaml")
        self._start_process(self.evaluator)
        self._start_process(self.worker)
        self._run(_prefect("--no-prompt", "deploy", "--all"), "prefect deploy --all")
        self._tell("Waiting until the evaluator knows the deployments")
        self._run(_assetflow("consumers", "wait"), "assetflow consumers wait")

    def stop(self) -> None:
        """Stop everything that was started, Spark's shared server too."""
        self._tell("Stopping the stack")
        for process in (self.worker, self.evaluator, self.server):
            process.stop()
        if self.spark.pid and self.spark.exit_code is None:
            self.spark.stop()
        self._stop_spark_server()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _stop_spark_server(self) -> None:
        """Stop Spark's local server of this stack, if a file says that there is one."""
        if self.environment.spark_server_file.exists():
            self._run(_assetflow("spark", "stop"), "stopping Spark's local server")

    def watch(self, over: threading.Event | None = None) -> None:
        """Start again what ends on its own, until it is over; without an end, until the caller is interrupted."""
        over = over or threading.Event()
        while not over.wait(RESTART_SECONDS):
            for process in (self.server, self.evaluator, self.worker):
                if process.exit_code is not None:
                    self._tell(f"The {process.name} ended with exit code {process.exit_code}; starting it again")
                    self._start_process(process)

    @contextlib.contextmanager
    def watched(self) -> Generator[None]:
        """Within the block, what ends on its own is started again."""
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
        try:
            return httpx.get(f"{self.environment.api_url}/health", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def _run(self, argv: list[str], what: str) -> None:
        """Run a command of the stack to its end.

        Raises:
            StackFailed: it failed; its output is told.
        """
        done = subprocess.run(
            argv,
            env=self.environment.processes_env,
            cwd=self.environment.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            told = "".join(f"\n    {line}" for line in (done.stdout + done.stderr).splitlines()[-12:])
            raise StackFailed(f"{what} failed with exit code {done.returncode}:{told}")

    def _take_lock(self) -> None:
        """Hold the project's stack for this process; what a killed one left behind is stopped first."""
        lock = (self.environment.home / "stack.json").open("a+")
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
            # The number may belong to somebody else by now.
            command = subprocess.run(
                ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
            )
            if " -m prefect " in command.stdout or " -m assetflow " in command.stdout:
                self._tell(f"Stopping process {pid}, left behind by a stack that was killed")
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
        if left:
            self._stop_spark_server()

    def _note_pids(self) -> None:
        assert self._lock is not None
        pids = [process.pid for process in (self.server, self.evaluator, self.worker, self.spark) if process.pid]
        self._lock.truncate(0)
        self._lock.write(json.dumps({"pids": pids, "api_url": self.environment.api_url}))
        self._lock.flush()


def empty(home: Path) -> None:
    """Take away what an earlier stack left in a folder; the lock file stays."""
    for entry in home.iterdir():
        if entry.name == "stack.json":
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _prefect(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "prefect", *arguments]


def _assetflow(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "assetflow", *arguments]
