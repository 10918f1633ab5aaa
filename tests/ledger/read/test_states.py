"""States for reads: the graph of flows is read once, and follows whatever changes it."""

from __future__ import annotations

from datetime import timedelta

from assetflow import Eager
from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.ledger import Ledger
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
