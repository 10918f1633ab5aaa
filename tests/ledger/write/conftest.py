"""A SQLite ledger with flows whose runs a test starts and ends; a test of both databases makes its own."""

import pytest

from assetflow.ledger import Ledger
from tests.ledger.write.test_kept import Place


@pytest.fixture
def place(sqlite_ledger: Ledger) -> Place:
    return Place(sqlite_ledger)
