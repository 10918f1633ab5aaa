"""Flows on the pool fork, start processes, threads and event loops, compute and move, as in an ordinary process."""

from __future__ import annotations

import json

import pytest

from tests.worker.pool import Pool

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(400)]

FLOWS = """
import asyncio, json, multiprocessing, os, subprocess, sys, threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from operator import neg
from pathlib import Path
from prefect import flow


def fork():
    reader, writer = os.pipe()
    number = os.fork()
    if number == 0:
        os.write(writer, b"from the child")
        os._exit(3)
    return os.read(reader, 100).decode(), os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def processes():
    answers = []
    for method in ("fork", "spawn", "forkserver"):
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
            answers.append(list(pool.map(neg, range(3))))
    return answers


def event_loop():
    async def main():
        process = await asyncio.create_subprocess_exec("echo", "said", stdout=asyncio.subprocess.PIPE)
        said, _ = await process.communicate()
        return said.decode().strip(), await asyncio.to_thread(sum, [1, 2])

    return asyncio.run(main())


def threads():
    found = []
    with ThreadPoolExecutor(4) as pool:
        found += pool.map(abs, range(-3, 0))
    timer = threading.Event()
    threading.Timer(0.01, timer.set).start()
    return found, timer.wait(10)


def numbers():
    import numpy, pyarrow, pyarrow.parquet

    ones = numpy.ones((300, 300))

    def work(number):
        pyarrow.parquet.write_table(pyarrow.table({"a": list(range(5000))}), f"{number}.parquet")
        table = pyarrow.parquet.read_table(f"{number}.parquet", use_threads=True)
        return float((ones @ ones).sum()), sum(table["a"].to_pylist())

    with ThreadPoolExecutor(4) as pool:
        return sorted(set(pool.map(work, range(8))))


def environment():
    before = os.environ.get("LEFT"), Path("here").exists()
    os.environ["LEFT"] = "by another run"
    os.makedirs("below", exist_ok=True)
    os.chdir("below")
    Path("here").touch()
    return before, subprocess.check_output("echo $LEFT in $(basename $PWD)", shell=True, text=True).strip()


@flow
def report(name, kind):
    # What is written counts from the folder in which the run starts.
    place = Path(name).absolute()
    place.write_text(json.dumps([os.getppid(), globals()[kind]()]))


@flow
async def report_async(name, kind):
    place = Path(name).absolute()
    answers = await asyncio.gather(*(asyncio.to_thread(neg, number) for number in range(3)))
    place.write_text(json.dumps([os.getppid(), answers]))
"""
ANSWERS = {
    "fork": ["from the child", 3],
    "processes": [[0, -1, -2]] * 3,
    "event_loop": ["said", 3],
    "threads": [[3, 2, 1], True],
    "numbers": [[27_000_000.0, 12_497_500]],
    "environment": [[None, False], "by another run in below"],
    "asynchronous": [0, -1, -2],
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_flow_does_what_it_does_in_an_ordinary_process(pool: Pool, kind: str) -> None:
    (pool.home / "kinds.py").write_text(FLOWS)
    deployment = pool.deploy(f"kinds.py:{'report_async' if kind == 'asynchronous' else 'report'}")
    # What the first run leaves behind, the second one would find.
    for number in range(2):
        name = f"{kind} {number}"
        run = pool.order(deployment, name=name, kind=kind)
        assert pool.ended(run) == "COMPLETED", pool.said(run)
        assert json.loads((pool.home / name).read_text()) == [pool.template(), ANSWERS[kind]]
