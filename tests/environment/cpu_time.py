"""How much CPU time a test of `make test` may take."""

from __future__ import annotations

import os

import pytest

SECONDS = 3.0
# Tests that need one of these run in `make test-services`, and may take longer.
OTHERS = ("prefect", "spark", "browser", "postgres", "rabbitmq", "redis", "long", "faults", "benchmark")


def used() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def is_limited(item: pytest.Item) -> bool:
    return not any(item.get_closest_marker(name) for name in OTHERS)


def refuse_long(seconds: float) -> None:
    if seconds > SECONDS:
        pytest.fail(
            f"The test took {seconds:.1f} s of CPU time, and in `make test` it may take {SECONDS:g} s: "
            "make it quicker, or mark it as `long`.",
            pytrace=False,
        )
