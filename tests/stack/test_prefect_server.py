"""The garbage collector of the stack's Prefect server stops nobody else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from assetflow.stack import prefect_server

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
