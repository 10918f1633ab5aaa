"""Much of one kind costs other passes nothing, and is read in pages. Contract 5.5, 8.6, 8.16."""

from dataclasses import replace
from itertools import pairwise
from uuid import UUID

import pytest

from assetflow import Asset
from assetflow.core.freshness.records import Item, ItemUpdate
from assetflow.core.freshness.state.source import FreshnessChanges
from assetflow.ledger import Ledger
from assetflow.ledger.fold.freshness_source import FEW, PAGE, FreshnessTables
from assetflow.ledger.fold.freshness_writing import write_freshness
from tests.ledger.making import NOW
from tests.ledger.sql.test_plans import statements
from tests.ledger.write.test_kept import Place, kept


def statements_below(ledger: Ledger, flows: int) -> int:
    """Return how many statements an update takes whose reader waits for a chain of so many flows."""
    place = Place(ledger)
    other, board, *tables = (Asset(f"s3://lake/{flows}/{number}") for number in range(flows + 3))
    for asset in (*tables, other, board):
        place.update(asset)
    for number, (reads, makes) in enumerate(pairwise(tables)):
        place.deploy(f"{flows}/{number}", kept([reads], [makes]))
    place.deploy(f"{flows}/board", kept([tables[-1], other], [board]))
    assert place.names(place.update(tables[0])) == [f"{flows}/0"]
    with statements(ledger) as found:
        assert not place.update(other)
    return len(found)


def test_8_6_the_statements_of_a_pass_do_not_grow_with_what_waits_above(sqlite_ledger: Ledger) -> None:
    assert statements_below(sqlite_ledger, 3) == statements_below(sqlite_ledger, 12)


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


@pytest.mark.parametrize("uris", [["s3://lake/core"], ["s3://lake/core", "s3://lake/raw"]])
def test_the_newest_updates_of_many_items_are_read_of_each_asset(ledger: Ledger, uris: list[str]) -> None:
    items = [Item(uri, f"{number:02}") for uri in uris for number in range(FEW + 1)]
    updates = [ItemUpdate(each, number, UUID(int=number), "v", NOW) for number, each in enumerate(items * 2, start=1)]
    with ledger.writes() as connection:
        changes = FreshnessChanges()
        changes.updates += updates
        write_freshness(connection, changes)
    with ledger.reads() as connection:
        found = dict(FreshnessTables(connection).newest(items))
    assert {item: update.sequence for item, update in found.items()} == {each.item: each.sequence for each in updates}
