"""Receipts and queues of consumed events, in the transaction that makes the decision and later."""

from __future__ import annotations

import pytest
from sqlalchemy import delete

from assetflow.core.rules import registry
from assetflow.core.rules.fold import record_and_pass
from assetflow.core.rules.state.state import prefetch
from assetflow.core.values.assets import Asset
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.errors import LedgerError
from assetflow.ledger import Ledger
from assetflow.ledger.read.decisions import ConsumedAsset
from assetflow.ledger.sql.tables import PENDING, RECEIPT
from tests.ledger.making import NOW, A, B, C, deploy, update


def test_older_and_newer_events_have_receipts_as_soon_as_they_are_consumed(ledger: Ledger) -> None:
    consumer = deploy(ledger, A & B)
    older, newer = update(A), update(B)
    ledger.writer.events.record([older], NOW)
    with ledger.transaction(NOW) as unit:
        _, [decision] = record_and_pass(unit.state, newer, NOW)
        found = [receipt for number in (1, 2) for receipt in unit.state.receipts.of(consumer.id, number)]
        assert [(each.event, each.status, each.decision) for each in found] == [
            (1, "consumed", decision.id),
            (2, "consumed", decision.id),
        ]
        assert unit.state.receipts.of(consumer.id + 1, 1) == []
    for recording in (older, newer):
        [record] = ledger.reader.receipts.of_event(recording.events[0].id)
        assert (record.receipt.status, record.receipt.decision) == ("consumed", decision.id)


def test_an_older_event_that_is_carried_over_and_consumed_in_one_transaction(ledger: Ledger) -> None:
    consumer = deploy(ledger, PartitionedAssetTimetable(assets=A & B))
    given = update(A, partition_key="key")
    ledger.writer.events.record([given], NOW)
    with ledger.transaction(NOW) as unit:
        changed = registry.change(
            unit.state, consumer, ConsumerOptions(to_schedule(PartitionedAssetTimetable(assets=A | C)))
        )
        [decision] = registry.pass_over_consumer(unit.state, changed, NOW)
        assert [each.status for each in unit.state.receipts.of(consumer.id, 1)] == ["consumed"]
    [record] = ledger.reader.receipts.of_event(given.events[0].id)
    assert (record.receipt.status, record.receipt.decision) == ("consumed", decision.id)


def test_a_memory_that_is_wrong_ends_in_an_error_and_is_forgotten(ledger: Ledger) -> None:
    deploy(ledger, A & B)
    ledger.writer.events.record([update(A)], NOW)
    with ledger.writes() as connection:
        connection.execute(delete(RECEIPT))
        connection.execute(delete(PENDING))
    with pytest.raises(LedgerError, match="not queued in the ledger"):
        ledger.writer.events.record([update(B)], NOW)
    assert [made for _, made in ledger.writer.events.record([update(B)], NOW)] == [[]]


def test_a_queue_counts_events_of_one_asset(ledger: Ledger) -> None:
    first, second = deploy(ledger, A & B), deploy(ledger, A & C, "flow/two")
    ledger.writer.events.record([update(A), update(A)], NOW)
    ledger.writer.events.record([update(A)], NOW)
    assert [ledger.reader.queues.size(each.id) for each in (first, second)] == [(1, 3), (1, 3)]
    ledger.writer.events.record([update(B)], NOW)
    assert [ledger.reader.queues.size(each.id) for each in (first, second)] == [(0, 0), (1, 3)]
    ledger.writer.queues.remove(second.id, event_id=ledger.reader.events.find()[0].id, by="me", now=NOW)
    assert ledger.reader.queues.size(second.id) == (1, 2)
    ledger.writer.events.record([update(A)], NOW)
    assert ledger.reader.queues.size(first.id) == (1, 1)
    with ledger.transaction(NOW) as unit:
        assert unit.state.queues.pending(first.id, None) == {A.uri: {None: 1}}
        assert unit.state.queues.pending(second.id, None) == {A.uri: {None: 3}}


def test_reading_begins_with_the_first_event_that_is_not_known(ledger: Ledger) -> None:
    deploy(ledger, A & B)
    deploy(ledger, A & C, "flow/two")
    ledger.writer.events.record([update(A), update(B)], NOW)
    with ledger.transaction(NOW) as unit:
        given = [update(B), update(A), update(C), update(B)]
        prefetch(unit.state, given)
        made = [[each.consumer for each in record_and_pass(unit.state, one, NOW)[1]] for one in given]
    assert made == [[], [1], [2], []]


def test_the_assets_of_decisions_are_told_in_the_order_of_their_first_event(ledger: Ledger) -> None:
    together = deploy(ledger, A & B & C, "f/together")
    alone = deploy(ledger, C, "f/alone")
    for asset in (B, A, Asset(B.uri, name="later"), B, A, C):
        ledger.writer.events.record([update(asset)], NOW)
    number = {each.consumer: each.number for each in ledger.reader.decisions.find()}

    found = ledger.reader.decisions.consumed_assets([*number.values(), 1_000])

    assert found == {
        number[together.id]: [
            ConsumedAsset(B.uri, B.name, "later", 3),
            ConsumedAsset(A.uri, A.name, A.name, 2),
            ConsumedAsset(C.uri, C.name, C.name, 1),
        ],
        number[alone.id]: [ConsumedAsset(C.uri, C.name, C.name, 1)],
    }


def test_of_very_many_consumed_events_the_first_of_an_asset_is_read_however_late(ledger: Ledger) -> None:
    deploy(ledger, A & B)
    for asset in (A, A, A, A, B):
        ledger.writer.events.record([update(asset)], NOW)
    (record,) = ledger.reader.decisions.find()

    found = ledger.reader.decisions.sample_of(record, most=2)

    assert ([event.sequence for event in found.events], found.total) == ([1, 2, 5], 5)
    assert len(ledger.reader.decisions.sample_of(record, most=6).events) == 5
