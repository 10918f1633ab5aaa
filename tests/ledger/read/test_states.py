"""States for reads: the graph of flows, queues, keys and consumed events, read with few statements."""

import pytest
from sqlalchemy import delete

from assetflow.core.rules import registry
from assetflow.core.rules.fold import record_and_pass
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.errors import LedgerError
from assetflow.ledger import Ledger
from assetflow.ledger.sql.tables import PENDING, RECEIPT
from tests.ledger.making import NOW, A, B, C, deploy, update


def test_older_and_newer_events_have_receipts_as_soon_as_they_are_consumed(ledger: Ledger) -> None:
    consumer = deploy(ledger, A & B)
    older, newer = update(A), update(B)
    ledger.writer.events.record([older], NOW)
    with ledger.transaction(NOW) as unit:
        _, [decision] = record_and_pass(unit.state, newer, NOW)
        found = [receipt for number in (1, 2) for receipt in unit.state.receipts.of(consumer.id, number)]
        expected = [(1, "consumed", decision.id), (2, "consumed", decision.id)]
        assert [(each.event, each.status, each.decision) for each in found] == expected
        assert unit.state.receipts.of(consumer.id + 1, 1) == []
    for each in (older, newer):
        [record] = ledger.reader.receipts.of_event(each.events[0].id)
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


@pytest.mark.rule("5.6")
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
