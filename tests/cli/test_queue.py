"""`queue rm` and `queue replay`: an operator's work."""

from __future__ import annotations

from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, event_id, update


def queued(call: Call, consumer: str) -> list[str]:
    return [each["event"] for each in call("queue", "ls", consumer, "--json").json]


def test_removed_events_have_a_receipt_that_says_who_and_why(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    deploy(ledger, "other/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)

    removed = call("queue", "rm", "report", "--why", "a test update", "--by", "ann", "--json").json

    assert removed == {"consumer": "report/shop", "partition": None, "removed": 1}
    assert (queued(call, "report"), queued(call, "other")) == ([], [str(event_id(1))])
    receipt = call("events", "show", str(event_id(1)), "--json").json["receipts"][0]
    assert (receipt["status"], receipt["by"], receipt["why"]) == ("removed", "ann", "a test update")


def test_events_are_removed_by_asset_and_time(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS & HOURLY)
    for minute, asset in ((1, ORDERS), (2, CUSTOMERS), (3, ORDERS), (4, ORDERS)):
        update(ledger, asset, minute)

    call("queue", "rm", "report", "--asset", "orders", "--before", "2026-01-01T13:04:00+01:00", "--why", "old")

    assert queued(call, "report") == [str(event_id(2)), str(event_id(4))]


def test_a_pending_partition_is_removed_only_by_its_key(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "daily/shop", ROLLED_UP)
    update(ledger, HOURLY, 1, "2026-01-01T00:00:00")
    update(ledger, HOURLY, 2, "2026-01-02T00:00:00")

    refused = call("queue", "rm", "daily", "--why", "x")
    assert (refused.code, refused.out) == (2, "")
    assert "2026-01-01, 2026-01-02" in refused.err
    assert len(queued(call, "daily")) == 2
    call("queue", "rm", "daily", "--partition", "2026-01-01", "--why", "x")
    assert queued(call, "daily") == [str(event_id(2))]


def test_an_undeliverable_decision_is_replayed_once(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS)
    (decision,) = update(ledger, ORDERS, 1)
    ledger.writer.undeliverable(decision.id, "gone", NOON)

    assert call("queue", "replay", str(decision.id)).code == 0

    assert [each["decision"] for each in call("decisions", "ls", "--waiting", "--json").json] == [str(decision.id)]
    assert call("queue", "replay", str(decision.id)).code == 2
