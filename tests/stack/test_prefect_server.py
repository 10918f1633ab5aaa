"""The stack's Prefect server: its garbage collector stops nobody, and many requests at once are not refused."""

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from assetflow.prefect_io.internals import pass_requests_through
from assetflow.stack import prefect_server
from assetflow.stack.prefect_server import OneWriter
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


STARTED = f"""
import gc, weakref
from {prefect_server.__name__} import collect_garbage_in_a_thread

class Garbage: pass

def make_garbage():
    garbage = Garbage()
    garbage.itself = garbage
    return weakref.ref(garbage)

collect_garbage_in_a_thread(0.001)
while not gc.get_freeze_count():
    pass
garbage = make_garbage()
while garbage() is not None:
    pass
print(gc.get_freeze_count() > 10 * len(gc.get_objects()))
"""


def test_what_the_server_has_imported_is_not_looked_through_again_and_later_garbage_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTED], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "True"


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


def test_an_application_gets_the_middleware_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.server.api import server

    monkeypatch.setattr(server, "create_app", server.create_app)
    pass_requests_through(OneWriter)
    found = [server.create_app(ephemeral=True) for _ in range(2)]
    assert found[0] is found[1]
    assert sum(each.cls is OneWriter for each in found[0].user_middleware) == 1
