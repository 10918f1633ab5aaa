"""What `assetflow dev` and `demo` say when they cannot start, and what a killed stack leaves to the next one."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from assetflow.errors import PortInUse, PrefectUnreachable, StackFailed
from assetflow.stack.demo import Demo
from assetflow.stack.environment import StackEnvironment, choose_port
from assetflow.stack.stack import Stack
from tests.environment.waiting import until

pytestmark = pytest.mark.long

SLEEPS = "import time; time.sleep(120)"


def assetflow(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "assetflow", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "prefect.yaml").write_text("deployments: [{name: shop, entrypoint: 'flows.py:report'}]\n")
    (tmp_path / "flows.py").write_text("from prefect import flow\n\n@flow\ndef report(): ...\n")
    return tmp_path


def test_a_port_in_use(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=str(port)):
            choose_port(port)
        done = assetflow(project, "demo", "--port", str(port))
    assert done.returncode == 2
    assert f"port {port} is in use" in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not (project / ".assetflow").exists()


def test_a_shell_with_the_settings_of_another_installation_uses_the_stack_alone(project: Path) -> None:
    here = environment(project)
    here.home.mkdir(parents=True)
    here.write_shell_file()
    others = {
        "ASSETFLOW_DATABASE_URL": "postgresql+psycopg://production/ledger",
        "ASSETFLOW_API_URL": "https://production",
        "ASSETFLOW_API_KEY": "secret",
        "PREFECT_API_KEY": "secret",
        "PREFECT_API_AUTH_STRING": "admin:secret",
    }
    shell = ["/bin/sh", "-euc", f". {here.shell_file}; env"]
    done = subprocess.run(shell, env=os.environ | others, capture_output=True, text=True, check=True)
    given = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert given.keys().isdisjoint(others)
    assert here.variables.items() <= given.items()
    assert not [name for name in here.variables if name.startswith("FLOWS_")], "it is of the flows of this repository"


def environment(project: Path) -> StackEnvironment:
    return StackEnvironment(project, project / ".assetflow" / "dev", choose_port(None))


def test_two_stacks_in_one_folder(project: Path) -> None:
    first, told = Stack(environment(project), lambda _: None), list[str]()
    first.environment.home.mkdir(parents=True)
    first._take_lock()
    try:
        with pytest.raises(StackFailed, match="already runs"), Stack(environment(project), told.append):
            pass
    finally:
        first.stop()
    assert told == []


def test_leftovers_of_a_killed_stack_are_stopped_and_nobody_else(project: Path) -> None:
    stack = Stack(environment(project), lambda _: None)
    stack.environment.home.mkdir(parents=True)
    # One looks like a part of the stack, the other one has taken the number of one that has ended.
    ours = subprocess.Popen([sys.executable, "-c", SLEEPS, " -m prefect "], start_new_session=True)
    other = subprocess.Popen([sys.executable, "-c", SLEEPS], start_new_session=True)
    try:
        (stack.environment.home / "stack.json").write_text(json.dumps({"pids": [ours.pid, other.pid]}))
        stack._take_lock()
        stack.stop()
        assert ours.wait(10) == -9
        assert other.poll() is None
    finally:
        for process in (ours, other):
            process.kill()
            process.wait()


FAKE_STACK = """
import signal
import sys
from pathlib import Path
from assetflow.cli.stacks import stop_on_signals
from assetflow.stack.environment import StackEnvironment
from assetflow.stack.stack import Stack

# Under nohup, as somebody may run the tests, it would stay ignored.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
stop_on_signals()

project = Path(sys.argv[1])
stack = Stack(StackEnvironment(project, project / ".assetflow" / "dev", 1), print)
stack.environment.home.mkdir(parents=True, exist_ok=True)
stack._take_lock()
stack.evaluator._argv = [sys.executable, "-c", "import time; time.sleep(120)", " -m prefect "]
stack._start_process(stack.evaluator)
try:
    print(stack.evaluator.pid, flush=True)
    stack.watch()
finally:
    stack.stop()
"""


@pytest.mark.parametrize("stopping", [signal.SIGHUP, signal.SIGTERM])
def test_a_closed_terminal_leaves_nothing_behind(project: Path, stopping: signal.Signals) -> None:
    terminal, its = os.openpty()
    with os.fdopen(terminal) as reader, os.fdopen(its) as inner:
        parent = subprocess.Popen(
            [sys.executable, "-c", FAKE_STACK, str(project)], stdout=inner, stderr=inner, start_new_session=True
        )
        child = next(int(line) for line in reader if line.strip().isdigit())
    # Nobody can read any more what it prints.
    parent.send_signal(stopping)
    parent.wait(60)
    assert not is_alive(child)


def test_what_a_stack_in_the_background_starts_can_be_interrupted() -> None:
    """A shell lets a job ignore SIGINT. The stack goes on; but Prefect's worker stops itself with SIGINT."""
    stack = "import subprocess, sys; from assetflow.cli.stacks import stop_on_signals; stop_on_signals(); "
    stack += "print(subprocess.run([sys.executable, '-c', sys.argv[1]]).returncode)"
    interrupted = "import os, signal; [os.kill(each, signal.SIGINT) for each in (os.getppid(), os.getpid())]"
    shell = ["/bin/sh", "-c", '"$@" & wait', "sh", sys.executable, "-c", stack, interrupted]
    done = subprocess.run(shell, capture_output=True, text=True, check=True)
    assert done.stdout == f"{-signal.SIGINT}\n"


def test_a_signal_to_the_demo_does_not_end_what_counts_for_it(project: Path) -> None:
    (project / "counts.py").write_text("import os\nprint(os.getsid(0) == os.getpid())\n")
    assert Demo(environment(project), lambda _: None)._run_module("counts") == "True\n"


def test_the_stacks_spark_server_is_stopped_without_another_process(project: Path) -> None:
    stack = Stack(environment(project), lambda _: None)
    file = stack.environment.spark_server_file
    file.parent.mkdir(parents=True)
    command = [sys.executable, "-c", SLEEPS, "org.apache.spark.sql.connect.service.SparkConnectServer"]
    with subprocess.Popen(command) as server:
        file.write_text(json.dumps({"pid": server.pid, "port": 1, "token": "secret", "version": "4.3.0"}))
        stack.stop()
        assert server.wait(10) == -signal.SIGTERM
    assert not file.exists()
    assert not stack.environment.logs.exists()


def is_alive(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return state.strip()[:1] not in ("", "Z")


def test_prefect_that_does_not_answer_a_redeploy_ends_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    stack = Stack(environment(project), told.append)

    def unreachable() -> None:
        raise PrefectUnreachable("Prefect does not answer")

    monkeypatch.setattr(stack, "deploy", unreachable)
    stack._reload()
    assert "Nothing was deployed" in told[-1]


def test_what_ends_while_it_is_watched_is_started_again(project: Path) -> None:
    told: list[str] = []
    stack = Stack(environment(project), told.append)
    stack.environment.home.mkdir(parents=True)
    stack._take_lock()
    stack.evaluator._argv = [sys.executable, "-c", SLEEPS]
    stack._start_process(stack.evaluator)
    first = stack.evaluator.pid
    assert first is not None
    try:
        with stack.watched():
            os.kill(first, signal.SIGKILL)
            until(lambda: stack.evaluator.pid != first)
    finally:
        stack.stop()
    assert told[0] == "The evaluator ended with exit code -9; starting it again"
    assert not is_alive(first)
