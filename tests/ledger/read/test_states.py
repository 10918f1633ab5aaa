"""States for reads: the graph of flows, queues, keys and consumed events, read with few statements."""

from datetime import timedelta

import pytest
from sqlalchemy import delete

from assetflow import Eager
from assetflow.core.partitions import IdentityMapper
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
from tests.ledger.making import NOW, A, B, C, deploy, deploy_maker, event, recording, update
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


def test_a_name_that_an_update_gives_is_seen(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(Asset.ref(name="named")), [B], [], "make/b")
    assert ledger.reader.freshness.readers(NAMED.uri, NOW) == []
    ledger.writer.events.record([update(NAMED)], NOW)
    assert [each.consumer for each in ledger.reader.freshness.readers(NAMED.uri, NOW)] == ["make/b"]


def test_what_would_happen_is_not_remembered(ledger: Ledger) -> None:
    made = deploy_maker(ledger, Eager(), [B], [A], "make/b")
    ledger.writer.consumers.switch(made.id, paused=True, now=NOW)
    ledger.writer.events.record([update(A)], NOW)
    before = planned(ledger)
    (run,) = ledger.reader.what_if.resumed(made.id, NOW).starts
    assert run.consumer == "make/b"
    assert planned(ledger) == before


def test_what_a_new_name_would_lead_to_is_told_without_writing(ledger: Ledger) -> None:
    deploy_maker(ledger, Eager(Asset.ref(name="named")), [B], [], "make/b")
    ledger.writer.events.record([update(Asset(NAMED.uri))], NOW)
    with statements(ledger) as sent:
        assert not ledger.reader.what_if.recorded([update(NAMED)], NOW).known
    assert not [text for text, _ in sent if text.startswith(("INSERT", "UPDATE"))]


def test_the_queues_that_wait_longest_come_first(ledger: Ledger) -> None:
    deploy(ledger, B & C, "late/one")
    by_key = PartitionedAssetTimetable(assets=A & B, default_partition_mapper=IdentityMapper())
    deploy(ledger, by_key, "keys/one")
    deploy(ledger, A & B, "plain/one")
    deploy(ledger, A & C, "third/one")
    for minute, recorded in enumerate((update(A, partition_key="y"), update(A, partition_key="x"), update(A))):
        ledger.writer.events.record([recorded], NOW + minute * MINUTE)
    ledger.writer.events.record([update(C)], NOW + 3 * MINUTE)

    found, total = ledger.reader.waiting.longest(NOW, limit=2)

    assert [(each.consumer, each.target_key, each.since) for each in found] == [
        ("keys/one", "x", NOW + MINUTE),
        ("plain/one", None, NOW + 2 * MINUTE),
    ]
    assert total == 3, "third/one has run"


KEYS = [f"2026-01-{day:02}" for day in (1, 2, 3, 9, 20, 31)]


def test_keys_are_counted_between_neighbours_and_from_the_last_one_on(ledger: Ledger) -> None:
    twice = [event(A, partition_key=key) for key in [*KEYS, *KEYS]]
    others = [event(A), event(B, partition_key="2026-01-05")]
    ledger.writer.events.record([recording(*twice, *others)], NOW)
    count = ledger.reader.partitions.counts_from
    assert count(A.uri, ["2026-01-01", "2026-01-03", "2026-01-10", "2026-01-15", "2026-01-20"]) == [2, 2, 0, 0, 2]
    assert count(A.uri, ["2026-01-02", "2026-02-01"]) == [5, 0]
    assert count("s3://lake/nothing", ["2026-01-02", "2026-02-01"]) == [0, 0]


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
