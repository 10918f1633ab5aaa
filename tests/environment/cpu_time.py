"""How much CPU time a test of `make test` may take."""

import os
from time import process_time

import pytest

SECONDS = float(os.environ.get("TEST_CPU_SECONDS", "3"))
# What two million additions take on an idle core of the machine for which the limit was chosen.
ADDITIONS = 0.05
# Tests that need one of these run in `make test-services`, and may take longer.
OTHERS = ("prefect", "spark", "browser", "postgres", "rabbitmq", "redis", "long", "faults", "benchmark")


def used() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def is_limited(item: pytest.Item) -> bool:
    return not any(item.get_closest_marker(name) for name in OTHERS)


def refuse_long(seconds: float) -> None:
    # A core that is shared computes less in a second, and not always: the clock of the CPU does not know it.
    if seconds > SECONDS and (taken := seconds / max(1.0, *(_additions() / ADDITIONS for _ in range(5)))) > SECONDS:
        pytest.fail(
            f"The test took {taken:.1f} s of CPU time, and in `make test` it may take {SECONDS:g} s: "
            "make it quicker, or mark it as `long`.",
            pytrace=False,
        )


def _additions() -> float:
    begun, total = process_time(), 0
    for number in range(2_000_000):
        total += number
    return process_time() - begun
