"""A child of the template is to its client what a process is: output, status, signals, environment."""

import json
import os
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from assetflow.worker import client
from tests.environment.waiting import until
from tests.worker.conftest import SECONDS, Seam, is_running

pytestmark = pytest.mark.long

# Only a child of the template has the template as its parent.

FORKED = "import os, sys; print('forked' if 'prefect' in sys.modules else 'ordinary')\n"


def line(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.readline().strip()


def test_output_and_status_are_those_of_the_module(seam: Seam) -> None:
    code = FORKED + "print('to stderr', file=sys.stderr)\nprint(sys.stdin.read())\nsys.exit(7)\n"
    with seam.start(seam.module("job", code)) as started:
        out, err = started.communicate("given", timeout=SECONDS)
    assert (started.returncode, out, err) == (7, "forked\ngiven\n", "to stderr\n")


def test_an_exception_is_shown_and_the_template_lives_on(seam: Seam) -> None:
    for code in ("raise ValueError('what a day')", "def broken(:"):
        status, _, err = seam.run(code)
        assert status == 1
        assert "what a day" in err or "SyntaxError" in err
    assert seam.run(FORKED)[:2] == (0, "forked\n")


def leave_free(process: int, descriptors: int) -> None:
    """Limit the open files of a process, so that it can open only so many more."""
    used = {int(each.name) for each in Path(f"/proc/{process}/fd").iterdir()}
    _, most = resource.prlimit(process, resource.RLIMIT_NOFILE)
    limit = next(
        n
        for n in range(max(used) + descriptors + 1, -1, -1)
        if n - len({each for each in used if each < n}) == descriptors
    )
    resource.prlimit(process, resource.RLIMIT_NOFILE, (limit, most))


def test_at_the_limit_of_open_files_runs_are_ordinary_until_there_is_room(own_seam: Seam) -> None:
    template = own_seam.process.pid
    limits = resource.prlimit(template, resource.RLIMIT_NOFILE)
    with own_seam.start(own_seam.module("waits", "print('begun', flush=True)\ninput()\nprint('ended')\n")) as running:
        assert line(running) == "begun"
        for free in range(6):
            leave_free(template, free)
            assert own_seam.run(FORKED)[:2] == (0, "ordinary\n"), free
        resource.prlimit(template, resource.RLIMIT_NOFILE, limits)
        assert own_seam.run(FORKED)[:2] == (0, "forked\n")
        out, _ = running.communicate("\n", timeout=SECONDS)
    assert (running.returncode, out) == (0, "ended\n")


def ask(seam: Seam, job: object) -> socket.socket:
    """Return a connection to the template that has asked for a job, as a client does."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(SECONDS)
    connection.connect(str(seam.place))
    request = json.dumps(job).encode()
    with Path(os.devnull).open("r+") as nothing:
        socket.send_fds(connection, [len(request).to_bytes(4, "big")], [nothing.fileno()] * 3)
    connection.sendall(request)
    return connection


@pytest.mark.parametrize("job", [[], 7, None, {}, {"module": "x", "environment": [], "folder": "/", "umask": 0}])
def test_what_is_no_job_does_not_end_the_template(seam: Seam, job: object) -> None:
    with ask(seam, job) as connection:
        assert connection.recv(1) == b""
    assert seam.run(FORKED)[:2] == (0, "forked\n")


def test_a_child_that_is_killed_before_it_may_begin_does_not_end_the_template(own_seam: Seam) -> None:
    job = {"module": "x", "environment": dict(os.environ), "folder": str(own_seam.folder), "umask": 0o22}
    with ask(own_seam, job) as connection:
        assert connection.recv(1) == client.FORKED
        child = int.from_bytes(connection.recv(4), "big")
        # So that the template hears of both at once.
        own_seam.process.send_signal(signal.SIGSTOP)
        os.kill(child, signal.SIGKILL)
        until(lambda: not is_running(child))
        connection.sendall(client.BEGIN)
        own_seam.process.send_signal(signal.SIGCONT)
        assert int.from_bytes(connection.recv(4), "big", signed=True) == -signal.SIGKILL
    assert own_seam.run(FORKED)[:2] == (0, "forked\n")


def test_a_run_has_its_own_environment_folder_and_modules(seam: Seam) -> None:
    (seam.folder / "helper.py").write_text("VALUE = 1\n")
    code = """
        import os, random, sys, time
        import helper
        print(os.environ.get("OF_THIS_RUN"), os.getcwd(), helper.VALUE, time.tzname[0], sys.path[0] == os.getcwd())
        os.environ["LEFT"], helper.VALUE = os.environ.get("LEFT", "") + "x", 7
        print(os.environ["LEFT"])
        os.chdir("/")
        random.seed(1)
    """
    first = seam.run(code, OF_THIS_RUN="one", TZ="Europe/Berlin")
    (seam.folder / "helper.py").write_text("VALUE = 20\n")
    second = seam.run(code, TZ="Asia/Tokyo")
    assert first == (0, f"one {seam.folder} 1 CET True\nx\n", "")
    assert second == (0, f"None {seam.folder} 20 JST True\nx\n", "")


def test_children_draw_other_random_numbers(seam: Seam) -> None:
    code = "import random, uuid, numpy; print(random.random(), numpy.random.random(), uuid.uuid4())"
    numbers = [seam.run(code)[1].split() for _ in range(2)]
    assert len({*numbers[0], *numbers[1]}) == 6


def test_settings_of_prefect_are_those_of_the_run(seam: Seam) -> None:
    code = """
        import logging
        from prefect.settings import get_current_settings
        print(get_current_settings().api.url, logging.getLogger("prefect").level)
    """
    given = {"PREFECT_API_URL": "http://there:4200/api", "PREFECT_LOGGING_LEVEL": "ERROR"}
    assert seam.run(code, **given) == (0, "http://there:4200/api 40\n", "")
    # The next run has neither.
    assert seam.run(code)[1].split()[1] != "40"


def test_settings_are_read_anew_from_files_that_differ(seam: Seam) -> None:
    code = "from prefect.settings import get_current_settings; print(get_current_settings().logging.level)"
    before = seam.run(code)[1]
    for level in ("WARNING", "CRITICAL"):
        (seam.folder / "prefect.toml").write_text(f"[logging]\nlevel = '{level}'\n")
        assert seam.run(code) == (0, f"{level}\n", "")
    (seam.folder / "prefect.toml").unlink()
    assert seam.run(code)[1] == before


def test_settings_that_are_the_same_are_not_read_anew(own_seam: Seam) -> None:
    """Reading them takes a child longer than everything else before the flow is loaded."""
    # The template has frozen its objects, so the garbage collector lists only those of the child.
    code = """
        import gc
        from prefect.context import GLOBAL_SETTINGS_CONTEXT
        print(any(each is GLOBAL_SETTINGS_CONTEXT for each in gc.get_objects()))
    """
    same, other = {"PREFECT__FLOW_RUN_ID": "1", "OF_MINE": "1"}, {"PREFECT_CLIENT_MAX_RETRIES": "7"}
    assert [own_seam.run(code, **given)[1] for given in ({}, same, other)] == ["False\n", "False\n", "True\n"]


@pytest.mark.parametrize(("name", "value"), [("PYTHONWARNINGS", "default"), ("OMP_NUM_THREADS", "7"), ("LC_ALL", "C")])
def test_what_is_read_at_a_start_needs_an_ordinary_process(seam: Seam, name: str, value: str) -> None:
    assert seam.run(FORKED, **{name: value})[:2] == (0, "ordinary\n")


def test_without_a_template_the_client_becomes_an_ordinary_process(own_seam: Seam) -> None:
    own_seam.process.kill()
    own_seam.process.wait()
    assert own_seam.run(FORKED + "sys.exit(3)")[:2] == (3, "ordinary\n")


def test_the_socket_is_its_users_alone(seam: Seam) -> None:
    assert stat.S_IMODE(seam.place.stat().st_mode) == 0o600


WAITS = "import os, signal, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_the_child_and_its_end_is_the_clients(seam: Seam, number: signal.Signals) -> None:
    with seam.start(seam.module("job", WAITS)) as started:
        line(started)
        started.send_signal(number)
        started.communicate(timeout=SECONDS)
    # Python ends by SIGINT itself after a KeyboardInterrupt.
    assert started.returncode == -number


def test_a_child_may_handle_a_signal(seam: Seam) -> None:
    code = """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
        print("ready", flush=True)
        time.sleep(60)
    """
    with seam.start(seam.module("job", code)) as started:
        assert line(started) == "ready"
        started.terminate()
        assert started.wait(SECONDS) == 5


def test_a_killed_child_is_a_killed_client(seam: Seam) -> None:
    with seam.start(seam.module("job", WAITS)) as started:
        os.kill(int(line(started)), signal.SIGKILL)
        assert started.wait(SECONDS) == -signal.SIGKILL


def until_gone(number: int) -> None:
    descriptor = os.pidfd_open(number) if is_running(number) else None
    if descriptor is not None:
        assert select.select([descriptor], [], [], SECONDS)[0], f"process {number} still runs"
        os.close(descriptor)


def test_a_killed_client_takes_its_child_along(seam: Seam) -> None:
    with seam.start(seam.module("job", WAITS)) as started:
        child = int(line(started))
        started.kill()
    until_gone(child)
    assert seam.run(FORKED)[:2] == (0, "forked\n")


def test_a_killed_template_takes_its_children_and_their_clients_along(own_seam: Seam) -> None:
    with own_seam.start(own_seam.module("job", WAITS)) as started:
        child = int(line(started))
        own_seam.process.kill()
        assert started.wait(SECONDS) == -signal.SIGKILL
    until_gone(child)


STARTS_ANOTHER = """
import subprocess, sys, time
stubborn = "trap '' TERM; echo ready; sleep 1000 & wait; sleep 1000"
started = subprocess.Popen(["sh", "-c", stubborn], stdout=subprocess.PIPE)
started.stdout.readline()
print(started.pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("end", ["client terminated", "client killed", "template killed"])
def test_what_a_child_has_started_ends_when_the_child_is_ended(own_seam: Seam, end: str) -> None:
    with own_seam.start(own_seam.module("job", STARTS_ANOTHER)) as started:
        other = int(line(started))
        if end == "template killed":
            own_seam.process.kill()
        else:
            started.send_signal(signal.SIGKILL if end == "client killed" else signal.SIGTERM)
        started.wait(SECONDS)
    until_gone(other)


def test_what_a_child_leaves_behind_when_it_ends_by_itself_goes_on(seam: Seam) -> None:
    code = """
        import subprocess
        print(subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid)
    """
    status, out, _ = seam.run(code)
    assert status == 0
    assert is_running(int(out))
    os.kill(int(out), signal.SIGKILL)


def test_without_its_worker_the_template_lets_its_children_end(own_seam: Seam) -> None:
    code = "import sys\nprint('began', flush=True)\nsys.exit(len(sys.stdin.read()))\n"
    with own_seam.start(own_seam.module("job", code)) as started:
        assert line(started) == "began"
        assert own_seam.process.stdin is not None
        own_seam.process.stdin.close()
        with own_seam.start(own_seam.module("other", FORKED)) as other:
            assert other.communicate(timeout=SECONDS)[0] == "ordinary\n"
        started.communicate("abc", timeout=SECONDS)
    assert started.returncode == 3
    assert own_seam.process.wait(SECONDS) == 0


def test_a_template_whose_worker_stops_while_it_imports_says_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "assetflow.worker.template", str(tmp_path / "removed" / "socket")]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_many_runs_leave_the_template_as_it_was(seam: Seam) -> None:
    def size() -> tuple[int, int]:
        process = Path(f"/proc/{seam.process.pid}")
        return len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))

    def memory() -> int:
        return int(Path(f"/proc/{seam.process.pid}/statm").read_text().split()[1])

    for _ in range(20):
        assert seam.run("")[0] == 0
    before, pages = size(), memory()
    for _ in range(60):
        assert seam.run("")[0] == 0
    # The template closes what belongs to a child after its client has ended.
    until(lambda: size() <= before)
    assert memory() < 1.02 * pages


WRITES = """
    import os, sys, time
    from pathlib import Path
    from prefect.logging import get_logger
    from prefect.logging.configuration import setup_logging

    setup_logging()
    print("begun", flush=True)
    while not Path("gate").exists():
        time.sleep(0.01)
    # Far more than a pipe holds.
    for number in range(200):
        get_logger("flow").warning("said %s", number)
        print("x" * 2000, flush=True)
    Path("done").write_text(str(os.getpid()))
"""
# It reads what the run writes, as Prefect's does, and says how the run ends.
WORKER = """
import json, subprocess, sys
pipe = subprocess.PIPE
run = subprocess.Popen(json.loads(sys.argv[1]), stdout=pipe, stderr=pipe, text=True)
print(run.pid, run.stdout.readline().strip(), flush=True)
out, err = run.communicate()
print(run.returncode, len(out), err.count("said"), flush=True)
"""


@pytest.mark.parametrize("dies", [True, False], ids=["the worker dies", "the worker lives"])
def test_a_run_writes_whatever_becomes_of_its_worker(seam: Seam, dies: bool) -> None:
    start = [sys.executable, "-S", "-E", client.__file__, str(seam.place), seam.module("job", WRITES)]
    command = [sys.executable, "-c", WORKER, json.dumps(start)]
    with subprocess.Popen(command, cwd=seam.folder, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        run, begun = worker.stdout.readline().split()
        assert begun == "begun"
        if dies:
            worker.kill()
            worker.wait()
        (seam.folder / "gate").touch()
        said = worker.communicate(timeout=SECONDS)[0]
    assert said == ("" if dies else f"0 {200 * 2001} 200\n")
    until((seam.folder / "done").exists, seconds=SECONDS)
    until(lambda: not is_running(int(run)), seconds=SECONDS)
