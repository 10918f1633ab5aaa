"""The subprocess that runs one scenario: it reads it from standard input and writes the result to standard output."""

from __future__ import annotations

import json
import resource
import sys

from assetflow.core.simulate import simulate
from assetflow.errors import AssetflowError, InvalidScenario

MEMORY_BYTES = 1024 * 1024 * 1024
CPU_SECONDS = 10


def main() -> None:
    """Write `{"answer": ...}` or `{"refused": ...}`, or nothing if the process reaches a limit."""
    _limit(resource.RLIMIT_AS, MEMORY_BYTES)
    _limit(resource.RLIMIT_CPU, CPU_SECONDS)
    try:
        answer: dict[str, object] = {"answer": simulate(json.load(sys.stdin))}
    except AssetflowError as error:
        answer = {"refused": error.as_dict()}
    except (RecursionError, ValueError) as error:
        answer = {"refused": InvalidScenario(f"cannot be read: {error}").as_dict()}
    sys.stdout.write(json.dumps(answer))


def _limit(kind: int, wanted: int) -> None:
    _, most = resource.getrlimit(kind)
    value = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(kind, (value, most))


if __name__ == "__main__":
    main()
