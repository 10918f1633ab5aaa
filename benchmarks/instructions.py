"""How many instructions an event costs, counted by valgrind: `python -m benchmarks.instructions`, for some 10 minutes.

The rounds are those of `benchmarks.engine`. What is counted is the same on a machine that is slow or busy, where CPU
times differ by a fifth from round to round. The caches are simulated: 32 KB for instructions and for data, 32 MB
behind them.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.engine import measure
from benchmarks.report import Figures, parser, tell

_VALGRIND = (
    "valgrind",
    "--tool=callgrind",
    "--instr-atstart=no",
    "--cache-sim=yes",
    "--I1=32768,8,64",
    "--D1=32768,8,64",
    "--LL=33554432,16,64",
)
LIMITS = {10_000: 728_549, 100: 627_863}
"""The number of consumers, and how many instructions an event may cost with 10,000 recordings into them."""
_COUNTED = re.compile(r"Events +: (.*)\n.*Collected : (.*)")


def count(folder: Path, recordings: int, consumers: int) -> Figures:
    """The counts of one round in a process of its own, each per event."""
    profile = folder / "callgrind"
    child = (sys.executable, "-m", "benchmarks.instructions", "--child", str(folder / "ledger.db"))
    sizes = ("--many", str(recordings), "--few", str(consumers))
    # With strings hashed at random, two runs would differ a little.
    done = subprocess.run(
        [*_VALGRIND, f"--callgrind-out-file={profile}", *child, *sizes],
        env=os.environ | {"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = _COUNTED.search(done.stderr)
    if done.returncode or found is None:
        raise SystemExit(f"valgrind counted nothing: {done.stderr[-3000:]}")
    events = dict(zip(found[1].split(), map(int, found[2].split()), strict=True))
    return {
        "recordings": recordings,
        "consumers": consumers,
        "instructions": round(events["Ir"] / recordings),
        "first_level_misses": round((events["D1mr"] + events["D1mw"]) / recordings),
        "last_level_misses": round((events["DLmr"] + events["DLmw"]) / recordings),
    }


def figures(many: int, few: int) -> Figures:
    """`many` recordings into `many` and into `few` consumers."""
    if shutil.which(_VALGRIND[0]) is None:
        raise SystemExit("valgrind is not here, and it does the counting: install it (`apt-get install valgrind`)")
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assetflow-"))) for _ in range(2)]
        threads = stack.enter_context(ThreadPoolExecutor(2))
        large, small = threads.map(count, folders, (many, many), (many, few))
    return {
        "instructions_ratio_10k_to_100": round(large["instructions"] / small["instructions"], 3),
        "first_level_misses_ratio": round(large["first_level_misses"] / small["first_level_misses"], 3),
        "last_level_misses_ratio": round(large["last_level_misses"] / small["last_level_misses"], 3),
        "sizes": [large, small],
    }


@contextmanager
def _counting() -> Iterator[None]:
    """Let the valgrind that this process runs in count."""
    _switch("on")
    try:
        yield
    finally:
        _switch("off")


def _switch(state: str) -> None:
    command = ["callgrind_control", "-i", state, str(os.getpid())]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def main() -> None:
    """Count, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--many", type=int, default=10_000, help="recordings, and consumers of the large size")
    options.add_argument("--few", type=int, default=100, help="consumers of the small size")
    options.add_argument("--child", type=Path, help="only one round, on a new ledger here (what runs in valgrind)")
    given = options.parse_args()
    if given.child:
        asyncio.run(measure(given.child, given.many, given.few, counting=_counting()))
    else:
        tell(figures(given.many, given.few), as_json=given.json)


if __name__ == "__main__":
    main()
