"""Which tests begin (`make test`, `make test-services`)."""

from collections.abc import Sequence

import pytest

# They take minutes: at the end, the other processes would wait for them.
LONGEST = (
    "tests/tour/",
    "tests/stack/test_demo.py",
    "tests/stack/test_first_project.py",
    "tests/ledger/fold/test_conformance.py",
    "tests/spark/",
    "tests/docs/test_pieces.py",
    "tests/watching/kinds/test_queues.py",
)


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with those of the longest files at the beginning, in this order."""

    def rank(item: pytest.Item) -> int:
        return next((rank for rank, name in enumerate(LONGEST) if item.nodeid.startswith(name)), len(LONGEST))

    return sorted(items, key=rank)
