"""The ledger of the evaluator's tests."""

from collections.abc import Iterator

import pytest

from tests.evaluator.ledgers import LedgerHere, ledger_here


@pytest.fixture
def ledger() -> Iterator[LedgerHere]:
    with ledger_here() as opened:
        yield opened
