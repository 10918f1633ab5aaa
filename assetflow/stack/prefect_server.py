"""`prefect server start`, with what makes it reliable on SQLite.

Prefect's server on SQLite can stop answering for 60 seconds. The garbage collector runs in the thread of the event
loop, and frees a cursor that a failed statement left behind. SQLite makes it wait for the cursor's connection, which
another thread uses: that thread waits for the write lock, up to Prefect's `busy_timeout` of 60 seconds, and the owner
of the write lock waits for the event loop. In a thread of its own, the garbage collector waits alone.

It also refuses many of the requests that come at the same time: see `OneWriter`. And it lets nobody in while a hundred
websockets are open, which fifty flow runs hold: see `leave_websockets_out_of_the_limit`.
"""

from __future__ import annotations

import gc
import itertools
import runpy
import sys
import threading
import time

SECONDS = 1.0
# Python collects its oldest objects more rarely than the younger ones, too.
ROUNDS_UNTIL_ALL = 30
# By then, the server has imported everything. That stays, and costs a third of a second if it is looked through.
ROUNDS_UNTIL_STARTED = 10


def collect_garbage_in_a_thread(seconds: float = SECONDS) -> None:
    """Collect this process's garbage in a daemon thread, and no longer in the threads that make it.

    Parameters:
        seconds: the pause between two collections.
    """
    gc.disable()
    threading.Thread(target=_collect, args=(seconds,), name="garbage", daemon=True).start()


def _collect(seconds: float) -> None:
    for rounds in itertools.count(1):
        time.sleep(seconds)
        if rounds == ROUNDS_UNTIL_STARTED:
            gc.collect()
            gc.freeze()
        else:
            gc.collect(2 if rounds % ROUNDS_UNTIL_ALL == 0 else 1)


def serve_many_on_sqlite() -> None:
    """Let requests that write take turns, and any number of flow runs listen, if Prefect's database is on SQLite."""
    # Whoever needs only the name of this module is spared the import of Prefect.
    from prefect.settings import get_current_settings

    from assetflow.prefect_io.internals import leave_websockets_out_of_the_limit, pass_requests_through
    from assetflow.stack.one_writer import OneWriter

    url = get_current_settings().server.database.connection_url
    if url is not None and url.get_secret_value().startswith("sqlite"):
        leave_websockets_out_of_the_limit()
        pass_requests_through(OneWriter)


def main() -> None:
    """Run `prefect server start` with the options of the command line."""
    collect_garbage_in_a_thread()
    serve_many_on_sqlite()
    sys.argv[1:] = ["server", "start", *sys.argv[1:]]
    runpy.run_module("prefect", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
