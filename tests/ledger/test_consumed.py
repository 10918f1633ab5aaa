"""What a decision consumes: receipts in the transaction that makes it, and after."""

from __future__ import annotations

import pytest
from sqlalchemy import delete

from assetflow.core import registry
from assetflow.core.fold import record_and_pass
from assetflow.core.schedules import ConsumerOptions, PartitionedAssetTimetable, to_schedule
from assetflow.errors import LedgerError
from assetflow.ledger import Ledger
from assetflow.ledger.tables import PENDING, RECEIPT
from tests.ledger.making import NOW, A, B, C, deploy, update


def test_receipts_of_older_and_newer_events_as_soon_as_they_are_consumed(ledger: Ledger) -> None:
    consumer = deploy(ledger, A & B)
    older, newer = update(A), update(B)
    ledger.writer.record([older], NOW)
    with ledger.transaction(NOW) as book:
        _, [decision] = record_and_pass(book, newer, NOW)
        found = [receipt for number in (1, 2) for receipt in book.receipts_of(consumer.id, number)]
        assert [(each.event, each.status, each.decision) for each in found] == [
            (1, "consumed", decision.id),
            (2, "consumed", decision.id),
        ]
        assert book.receipts_of(consumer.id + 1, 1) == []
    for recording in (older, newer):
        [record] = ledger.reader.receipts(recording.events[0].id)
        assert (record.receipt.status, record.receipt.decision) == ("consumed", decision.id)


def test_an_older_event_that_is_carried_over_and_consumed_in_one_transaction(ledger: Ledger) -> None:
    consumer = deploy(ledger, PartitionedAssetTimetable(assets=A & B))
    given = update(A, partition_key="key")
    ledger.writer.record([given], NOW)
    with ledger.transaction(NOW) as book:
        changed = registry.change(book, consumer, ConsumerOptions(to_schedule(PartitionedAssetTimetable(assets=A | C))))
        [decision] = registry.pass_over_consumer(book, changed, NOW)
        assert [each.status for each in book.receipts_of(consumer.id, 1)] == ["consumed"]
    [record] = ledger.reader.receipts(given.events[0].id)
    assert (record.receipt.status, record.receipt.decision) == ("consumed", decision.id)


def test_a_memory_that_is_wrong_ends_in_an_error_and_is_forgotten(ledger: Ledger) -> None:
    deploy(ledger, A & B)
    ledger.writer.record([update(A)], NOW)
    with ledger.writes() as connection:
        connection.execute(delete(RECEIPT))
        connection.execute(delete(PENDING))
    with pytest.raises(LedgerError, match="not queued in the ledger"):
        ledger.writer.record([update(B)], NOW)
    assert [made for _, made in ledger.writer.record([update(B)], NOW)] == [[]]


def test_a_queue_counts_events_of_one_asset(ledger: Ledger) -> None:
    first, second = deploy(ledger, A & B), deploy(ledger, A & C, "flow/two")
    ledger.writer.record([update(A), update(A)], NOW)
    ledger.writer.record([update(A)], NOW)
    assert [ledger.reader.queue_size(each.id) for each in (first, second)] == [(1, 3), (1, 3)]
    ledger.writer.record([update(B)], NOW)
    assert [ledger.reader.queue_size(each.id) for each in (first, second)] == [(0, 0), (1, 3)]
    ledger.writer.remove_queued(second.id, event_id=ledger.reader.events()[0].id, by="me", now=NOW)
    assert ledger.reader.queue_size(second.id) == (1, 2)
    ledger.writer.record([update(A)], NOW)
    assert ledger.reader.queue_size(first.id) == (1, 1)
    with ledger.transaction(NOW) as book:
        assert book.pending(first.id, None) == {A.uri: {None: 1}}
        assert book.pending(second.id, None) == {A.uri: {None: 3}}


def test_reading_begins_with_the_first_event_that_is_not_known(ledger: Ledger) -> None:
    deploy(ledger, A & B)
    deploy(ledger, A & C, "flow/two")
    ledger.writer.record([update(A), update(B)], NOW)
    with ledger.transaction(NOW) as book:
        given = [update(B), update(A), update(C), update(B)]
        book.load(given)
        made = [[each.consumer for each in record_and_pass(book, one, NOW)[1]] for one in given]
    assert made == [[], [1], [2], []]
