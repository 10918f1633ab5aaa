"""Code that forks, starts processes, threads and event loops does in a child what it does in an ordinary process."""

import subprocess
import sys

import pytest

from tests.worker.conftest import SECONDS, Seam

pytestmark = pytest.mark.long

# Each prints what must be the same in both.
CODES = {
    "subprocess": """
        import subprocess, sys
        done = subprocess.run([sys.executable, "-c", "print(input())"], input="given", capture_output=True, text=True)
        print(done.returncode, done.stdout)
    """,
    "multiprocessing": """
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        from operator import neg

        if __name__ == "__main__":
            for method in ("fork", "spawn", "forkserver"):
                context = multiprocessing.get_context(method)
                with ProcessPoolExecutor(2, mp_context=context) as pool:
                    print(method, list(pool.map(neg, range(4))))
    """,
    "asyncio": """
        import asyncio, signal

        async def main():
            loop = asyncio.get_running_loop()
            heard = asyncio.Event()
            loop.add_signal_handler(signal.SIGUSR1, heard.set)
            signal.raise_signal(signal.SIGUSR1)
            await heard.wait()
            process = await asyncio.create_subprocess_exec("echo", "said", stdout=asyncio.subprocess.PIPE)
            said, _ = await process.communicate()
            return said, process.returncode, await asyncio.to_thread(sum, [1, 2])

        print(asyncio.run(main()))
    """,
    "signals": """
        import signal
        names = ("SIGINT", "SIGTERM", "SIGCHLD", "SIGHUP", "SIGPIPE", "SIGUSR1")
        print([str(signal.getsignal(getattr(signal, name))) for name in names if name != "SIGINT"])
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.set_wakeup_fd(-1))
    """,
    "numbers": """
        import threading
        import numpy, pyarrow, pyarrow.parquet
        from concurrent.futures import ThreadPoolExecutor

        matrix = numpy.arange(90_000.0).reshape(300, 300) / 90_000

        def work(number):
            pyarrow.parquet.write_table(pyarrow.table({"a": list(range(5000))}), f"{number}.parquet")
            table = pyarrow.parquet.read_table(f"{number}.parquet", use_threads=True)
            return round(float((matrix @ matrix).sum()), 3), sum(table["a"].to_pylist())

        with ThreadPoolExecutor(4) as pool:
            print(set(pool.map(work, range(8))))
    """,
}


@pytest.mark.parametrize("kind", CODES)
def test_a_child_does_what_a_process_does(seam: Seam, kind: str) -> None:
    forked = seam.run(CODES[kind])
    command = [sys.executable, "-m", "job"]
    done = subprocess.run(command, cwd=seam.folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert forked == (done.returncode, done.stdout, done.stderr)
