"""A pass reads together what runs and waits above a flow, however much that is (contract 8.6, 8.16)."""

from __future__ import annotations

from itertools import pairwise

from assetflow import Asset
from assetflow.ledger import Ledger
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
