"""The stack's Prefect server: its garbage collector stops nobody, and many requests at once are not refused."""

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from assetflow.stack import prefect_server
from tests.environment.prefect_server import PrefectServer

# A writer's thread waits for the write lock of another connection, while garbage of the writer's connection is
# collected. The lock is given back only by the thread that made the garbage.
SERVER = """
import gc, sqlite3, sys, threading, time, weakref

class Garbage: pass

def make_garbage(writer):
    garbage = Garbage()
    garbage.itself = garbage
    garbage.cursor = writer.execute("values (1), (2)")
    garbage.cursor.fetchone()
    return weakref.ref(garbage)

writer = sqlite3.connect("numbers.db", timeout=2, check_same_thread=False, isolation_level=None)
writer.execute("pragma journal_mode = wal")
writer.execute("create table numbers (id integer)")
owner = sqlite3.connect("numbers.db", isolation_level=None)
{collecting}
garbage = make_garbage(writer)
owner.execute("begin immediate")
problems = []

def write():
    try:
        writer.execute("insert into numbers values (1)")
    except sqlite3.OperationalError as error:
        problems.append(error)

thread = threading.Thread(target=write)
thread.start()
time.sleep(0.2)
while garbage() is not None:
    kept = [[] for _ in range(1000)]
owner.execute("commit")
thread.join()
print(problems)
"""


@pytest.mark.parametrize(
    ("collecting", "said"),
    [
        (f"from {prefect_server.__name__} import *; collect_garbage_in_a_thread(0.01)", "[]"),
        ("", "[OperationalError('database is locked')]"),
    ],
    ids=["in a thread", "where it is made"],
)
def test_collecting_garbage_stops_nobody(tmp_path: Path, collecting: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SERVER.format(collecting=collecting)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == said


@pytest.mark.prefect
def test_requests_that_write_at_the_same_time_are_not_refused(prefect_server: PrefectServer) -> None:
    with httpx.Client(base_url=prefect_server.api_url, timeout=60) as http, ThreadPoolExecutor(16) as threads:
        flow = http.post("/flows/", json={"name": f"burst-{uuid4().hex}"}).json()["id"]

        def run(_: int) -> list[int]:
            made = http.post("/flow_runs/", json={"flow_id": flow})
            path = f"/flow_runs/{made.json()['id']}"
            labelled = http.patch(f"{path}/labels", json={"a": "b"})
            begun = http.post(f"{path}/set_state", json={"state": {"type": "RUNNING"}})
            return [made.status_code, labelled.status_code, begun.status_code]

        answers = Counter(status for statuses in threads.map(run, range(60)) for status in statuses)
    assert set(answers) == {201, 204}
