"""What needs an ordinary process: variables that are read at a start, and what a fork would break, named."""

import subprocess
import sys
import textwrap

import pytest

from assetflow.worker.child import differs

OWN = {"PATH": "/bin", "LANG": "C.UTF-8", "PYTHONPATH": "/a"}


@pytest.mark.parametrize(
    "name", ["PYTHONPATH", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "ARROW_DEFAULT_MEMORY_POOL", "LANG", "SSL_CERT_FILE"]
)
def test_a_variable_that_is_read_at_a_start_needs_a_process_of_its_own(name: str) -> None:
    assert differs(OWN | {name: "other"}, OWN)


@pytest.mark.parametrize("name", ["PATH", "TZ", "PREFECT_API_URL", "ASSETFLOW_HOME", "HOME"])
def test_other_variables_are_set_in_the_child(name: str) -> None:
    assert not differs(OWN | {name: "other"}, OWN)


UNFIT = {
    "a thread": (
        "import threading, time; threading.Thread(target=time.sleep, args=(60,), name='mine', daemon=True).start()",
        "has started a thread (mine)",
    ),
    "a native thread with the name of the process": (
        """
        import ctypes
        libc = ctypes.CDLL(None)
        libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.pause, None)
        """,
        "has started a native thread (python",
    ),
    "a gRPC channel": (
        """
        import grpc
        channel = grpc.insecure_channel("localhost:1")
        channel.subscribe(print, try_to_connect=True)
        """,
        "has started a thread",
    ),
    "an event loop": ("import asyncio; loop = asyncio.new_event_loop()", "has opened a connection or an event loop"),
    "a process": ("import subprocess; gateway = subprocess.Popen(['sleep', '60'])", "has started a process"),
    "a lock": ("import threading; MINE = threading.Lock(); MINE.acquire()", "holds a lock (MINE)"),
}
ASKS = """
import sys
from assetflow.worker.may_fork import why_not_fork, why_not_serve
exec(sys.argv[1])
print(why_not_serve(), flush=True)
try:
    gateway.kill()
except NameError:
    pass
# Threads that do not end.
import os
os._exit(0)
"""


def answer(code: str) -> str:
    command = [sys.executable, "-c", ASKS, textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(("code", "expected"), UNFIT.values(), ids=UNFIT)
def test_what_a_fork_would_break_is_named(code: str, expected: str) -> None:
    assert answer(code).startswith(expected)


FIT = {
    "nothing": "",
    "threads of OpenBLAS": "import numpy; numpy.ones((500, 500)) @ numpy.ones((500, 500))",
    "the allocator of Arrow": "import pyarrow; pyarrow.array(range(10_000))",
    "a thread that has ended": (
        "import threading; thread = threading.Thread(target=print); thread.start(); thread.join()"
    ),
    "what is closed": "import asyncio; asyncio.run(asyncio.sleep(0)); import threading; FREE = threading.Lock()",
}


@pytest.mark.parametrize("code", FIT.values(), ids=FIT)
def test_what_survives_a_fork_is_not_in_the_way(code: str) -> None:
    assert answer(code) == "None"
