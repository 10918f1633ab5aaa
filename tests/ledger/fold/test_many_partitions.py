"""Much of one kind costs other passes nothing, and is read in pages. Contract 5.5, 8.6, 8.16."""

from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from assetflow import Asset
from assetflow.core.freshness.records import Item, ItemUpdate
from assetflow.core.freshness.state.source import FreshnessChanges
from assetflow.core.partitions import FixedKeyMapper
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.ledger import Ledger
from assetflow.ledger.fold.freshness_source import PAGE, FreshnessTables
from assetflow.ledger.fold.freshness_writing import write_freshness
from tests.ledger.making import NOW, A, B, C, deploy, event, recording, update
from tests.ledger.sql.test_plans import statements
from tests.ledger.write.test_kept import Place, kept


def keyed(count: int, asset: Any = A) -> Any:
    return recording(*(event(asset, partition_key=f"k{number}") for number in range(count)))


def test_of_very_many_queued_events_the_oldest_and_the_first_of_each_asset_and_key_are_read(ledger: Ledger) -> None:
    consumer = deploy(
        ledger, PartitionedAssetTimetable(assets=A & B & C, default_partition_mapper=FixedKeyMapper("all"))
    )
    for key in ("a", "a", "b", "a", "c", "b"):
        ledger.writer.events.record([update(A, partition_key=key)], NOW)
    ledger.writer.events.record([update(B, partition_key="a")], NOW)

    found = ledger.reader.queues.sample_of(consumer.id, "all", most=2)

    assert [event.sequence for event in found.events] == [1, 2, 3, 5, 7]
    assert (found.counts, found.total) == ({A.uri: 6, B.uri: 1}, 7)
    assert len(ledger.reader.queues.sample_of(consumer.id, "all", most=8).events) == 7
    few = ledger.reader.queues.sample_of(consumer.id, "all", most=7)
    assert (len(few.events), few.counts) == (7, found.counts)
    [(_, (decision,))] = ledger.writer.events.record([update(C, partition_key="a")], NOW)
    (record,) = ledger.reader.decisions.find(consumer=decision.consumer)
    consumed = ledger.reader.decisions.sample_of(record, most=2)
    assert [event.sequence for event in consumed.events] == [1, 2, 3, 5, 7, 8]
    assert consumed.total == 8


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
