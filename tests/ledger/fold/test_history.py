"""The history of an item is read in pages, and lacks nothing."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from assetflow.core.freshness.records import Item, ItemUpdate
from assetflow.core.freshness.state.source import FreshnessChanges
from assetflow.ledger import Ledger
from assetflow.ledger.fold.freshness_source import PAGE, FreshnessTables
from assetflow.ledger.fold.freshness_writing import write_freshness
from tests.ledger.making import NOW

ITEM = Item("s3://lake/core", None)


@pytest.mark.parametrize("newer", [0, 1, PAGE - 2, PAGE - 1])
def test_an_update_whose_confirmation_ends_a_page_is_not_left_out(ledger: Ledger, newer: int) -> None:
    """So many updates, the newest ones, are not confirmed; the others are."""
    updates = [ItemUpdate(ITEM, number, UUID(int=number), f"v{number}", NOW) for number in range(1, 2 * PAGE + 2)]
    confirms = [replace(each, event=UUID(int=9_000 + each.sequence), confirms=True) for each in updates]
    del confirms[len(confirms) - newer :]
    with ledger.writes() as connection:
        changes = FreshnessChanges()
        changes.updates += [*updates, *confirms]
        write_freshness(connection, changes)
    with ledger.reads() as connection:
        found = list(FreshnessTables(connection).history(ITEM))
    assert [each.sequence for each in found if not each.confirms] == list(range(2 * PAGE + 1, 0, -1))
    assert len(found) == len(updates) + len(confirms)
