"""What a deploy would change is what the deploy then changes. Contract 11.4, 11.5."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from assetflow.core.compare import Comparison
from assetflow.core.partitions import StartOfDayMapper, StartOfMonthMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire.declarations import FlowDeclaration
from assetflow.core.wire.deployments import Deployed
from assetflow.ledger import Ledger
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, deploy, update
from tests.ledger.write.test_kept import CORE, RAW, Place, kept

NOW = NOON + timedelta(hours=1)
OTHER = Asset("s3://lake/other")
DAYS = PartitionedAssetTimetable(assets=HOURLY, default_partition_mapper=StartOfDayMapper())
MONTHS = PartitionedAssetTimetable(assets=HOURLY, default_partition_mapper=StartOfMonthMapper())


def wanted(name: str, schedule: object, **more: Any) -> Deployed:
    return Deployed.of(name, FlowDeclaration(ConsumerOptions(to_schedule(schedule)), **more), NOW)


def compared(
    ledger: Ledger, *flows: Deployed, renamed: Mapping[str, str] | None = None, keep: Collection[str] = ()
) -> Comparison:
    comparing = ledger.reader.comparing
    return comparing.deploy(comparing.deployed(), flows, NOW, renamed=renamed or {}, keep=keep)


def test_rule_11_4_the_queued_events_that_a_changed_schedule_loses_are_those_that_a_deploy_supersedes(
    ledger: Ledger,
) -> None:
    consumer = deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    for minute in range(3):
        update(ledger, ORDERS, minute)
    flow = wanted("report/shop", CUSTOMERS & OTHER)
    (change,) = compared(ledger, flow).consumers
    changed = ("changed", "orders AND customers", "customers AND s3://lake/other")
    assert (change.kind, change.before, change.after) == changed
    assert change.superseded == {ORDERS.uri: 3}
    assert ledger.reader.queues.size(consumer.id)[1] == 3

    ledger.writer.consumers.change(consumer.id, flow.text, NOW)
    receipts = [each for event in ledger.reader.events.find() for each in ledger.reader.receipts.of_event(event.id)]
    assert [each.receipt.status for each in receipts] == ["superseded"] * 3


def test_rule_11_4_runs_that_the_deploy_starts_at_once_are_those_that_it_then_starts(ledger: Ledger) -> None:
    consumer = deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)
    flow = wanted("report/shop", ORDERS)
    (run,) = compared(ledger, flow).runs
    assert (run.consumer, run.target_key, run.words) == ("report/shop", None, "with 1 update")
    (made,) = ledger.writer.consumers.change(consumer.id, flow.text, NOW)[1]
    assert len(made.events) == 1


def test_rule_11_4_keys_are_mapped_anew(ledger: Ledger) -> None:
    before, after = (
        PartitionedAssetTimetable(assets=HOURLY & ORDERS, default_partition_mapper=mapper)
        for mapper in (StartOfDayMapper(), StartOfMonthMapper())
    )
    deploy(ledger, "report/shop", before)
    update(ledger, HOURLY, 1, "2026-01-01T01:00:00")
    (change,) = compared(ledger, wanted("report/shop", after)).consumers
    assert (change.mapped_anew, change.superseded) == (1, {})
    assert change.before != change.after


def test_rule_11_4_an_eager_flow_runs_because_of_its_code_version(ledger: Ledger) -> None:
    place = Place(ledger)
    place.deploy("core", kept([RAW], [CORE], code="1"))
    (decision,) = place.update(RAW)
    place.run("core", decision, CORE, code="1")
    comparing = ledger.reader.comparing
    flow = Deployed.of("core", kept([RAW], [CORE], code="2"), NOW)
    found = comparing.deploy(comparing.deployed(), [flow], place.later(), renamed={}, keep=())
    assert [(run.consumer, run.words) for run in found.runs] == [("core", "its code has another version")]
    assert len(place.deploy("core", kept([RAW], [CORE], code="2"))) == 1


def test_rule_11_4_what_is_added_removed_renamed_and_refused(ledger: Ledger) -> None:
    deploy(ledger, "old/shop", ORDERS)
    deploy(ledger, "gone/shop", CUSTOMERS)
    deploy(ledger, "same/shop", ORDERS)
    found = compared(
        ledger,
        wanted("same/shop", ORDERS),
        wanted("new/shop", ORDERS),
        wanted("added/shop", "0 6 * * *"),
        wanted("taken/shop", Asset("s3://lake/others", name="orders")),
        renamed={"new/shop": "old/shop"},
    )
    assert {each.consumer: each.kind for each in found.consumers} == {
        "added/shop": "added",
        "gone/shop": "removed",
        "new/shop": "renamed",
        "taken/shop": "refused",
    }
    assert found.unchanged == 1
    assert {each.consumer: each.automation for each in found.consumers if each.automation} == {
        "added/shop": "made",
        "gone/shop": "removed",
        "new/shop": "made",
    }
    assert "belongs to" in next(each.refused for each in found.consumers if each.refused)


def test_rule_11_4_assets_lose_their_last_producer_and_consumer(ledger: Ledger) -> None:
    deploy(ledger, "producer/shop", None, produces=(ORDERS, CUSTOMERS))
    deploy(ledger, "report/shop", ORDERS | CUSTOMERS)
    found = compared(ledger, wanted("producer/shop", None, produces=(CUSTOMERS,)), wanted("report/shop", ORDERS))
    assert {(each.asset, each.lost) for each in found.assets} == {(ORDERS.uri, "producer"), (CUSTOMERS.uri, "consumer")}


def test_rule_11_4_the_same_declaration_changes_nothing(ledger: Ledger) -> None:
    deploy(ledger, "report/shop", DAYS)
    deploy(ledger, "others/shop", MONTHS)
    assert not compared(ledger, wanted("report/shop", DAYS), keep=["others/shop"]).changes_something
