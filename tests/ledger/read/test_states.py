"""States for reads: the graph of flows, queues, keys and consumed events, read with few statements."""

from datetime import timedelta

import pytest
from sqlalchemy import delete

from assetflow import Eager
from assetflow.core.rules import registry
from assetflow.core.rules.fold import record_and_pass
from assetflow.core.values.assets import Asset
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.errors import LedgerError
from assetflow.ledger import Ledger
from assetflow.ledger.sql.tables import PENDING, RECEIPT
from tests.ledger.making import NOW, A, B, C, deploy, deploy_maker, update
from tests.ledger.sql.test_plans import statements

NAMED = Asset("s3://lake/named", name="named")
MINUTE = timedelta(minutes=1)


def planned(ledger: Ledger) -> dict[str, str]:
    return {each.consumer: each.words for each in ledger.reader.freshness.plan(NOW)}


def test_all_flows_are_read_once(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(), [B], [A], "make/b")
    before = planned(ledger)
    with statements(ledger) as sent:
        assert planned(ledger) == before
        ledger.reader.what_if.recorded([update(A)], NOW)
    assert not [text for text, _ in sent if "FROM consumer" in text and "removed_at IS NULL ORDER BY" in text]


def test_a_flow_that_is_deployed_switched_or_removed_is_seen(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(), [B], [A], "make/b")
    reader = ledger.reader.freshness
    assert reader.status(C.uri, None, NOW).state == "unknown"

    made = deploy_maker(ledger, Eager(), [C], [B], "make/c")
    assert reader.status(C.uri, None, NOW).state == "missing"
    ledger.writer.consumers.switch(made.id, paused=True, now=NOW)
    assert "paused" in planned(ledger)["make/c"]
    ledger.writer.consumers.remove(made.id, NOW)
    assert reader.status(C.uri, None, NOW).state == "unknown"


def test_what_would_happen_is_not_remembered(ledger: Ledger) -> None:
    made = deploy_maker(ledger, Eager(), [B], [A], "make/b")
    ledger.writer.consumers.switch(made.id, paused=True, now=NOW)
    ledger.writer.events.record([update(A)], NOW)
    before = planned(ledger)
    (run,) = ledger.reader.what_if.resumed(made.id, NOW).starts
    assert run.consumer == "make/b"
    assert planned(ledger) == before


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
