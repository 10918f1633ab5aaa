"""A child of the template is to its client what a process is: output, status, signals, environment."""

import os
import select
import signal
import stat
import subprocess

import pytest

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
