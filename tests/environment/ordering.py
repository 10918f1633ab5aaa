"""Which tests begin (`make test`, `make test-services`)."""

from collections.abc import Sequence

import pytest

# They take minutes: at the end, the other processes would wait for them.
LONGEST = (
    "tests/tour/",
    "tests/stack/test_first_project.py",
    "tests/ledger/fold/",
    "tests/stack/test_demo.py",
    "tests/spark/test_publish.py",
    "tests/stack/",
    "tests/integration/test_dbt.py",
    "tests/faults/",
    "tests/spark/",
    "tests/browser/test_every_page.py",
    "tests/worker/test_",
)


def longest_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests with those of the longest files at the beginning, in this order."""
    order = (*LONGEST, "")
    return sorted(items, key=lambda item: next(n for n, name in enumerate(order) if item.nodeid.startswith(name)))
