"""`explain` and `events show`: the one explanation, from a ledger."""

from uuid import uuid4

from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, event_id, update


def test_a_consumer_is_explained_with_what_satisfies_each_leaf(ledger: Ledger, call: Call) -> None:
    consumer = deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)

    told = call("explain", "report/shop", "--json").json

    for name in ("report", str(consumer.id), str(consumer.deployment_id)):
        assert call("explain", name, "--json").json == told
    out = call("explain", "report").out
    assert f"✔ orders  satisfied by event {event_id(1)}" in out
    assert "○ customers  waiting for an update" in out


def test_a_partitioned_consumer_is_explained_key_by_key(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "daily/shop", ROLLED_UP)
    for minute, hour in enumerate(range(22)):
        update(ledger, HOURLY, minute, f"2026-01-01T{hour:02d}:00:00")
    update(ledger, HOURLY, 50, "2026-01-02T00:00:00")
    told = call("explain", "daily", "--json").json
    assert [each["target_key"] for each in told["partitions"]] == ["2026-01-01", "2026-01-02"]
    assert told["pending_partitions"] == 2
    one = call("explain", "daily", "--key", "2026-01-01", "--json").json
    assert one["missing"] == ["2026-01-01T22:00:00", "2026-01-01T23:00:00"]
    assert "missing 2026-01-01T22:00:00, 2026-01-01T23:00:00" in call("explain", "daily").out


def test_a_run_is_explained_by_its_decision(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)
    (decision,) = update(ledger, CUSTOMERS, 2)
    run = uuid4()
    ledger.writer.decisions.launched(decision.id, run, NOON)
    told = call("explain", "--run", str(run), "--json").json
    assert told["id"] == str(decision.id)
    assert told["completed_by"] == str(event_id(2))
    assert [each["id"] for each in told["events"]] == [str(event_id(1)), str(event_id(2))]
    assert "last one needed" in call("explain", "--run", str(run)).out
    for name in (decision.id, str(decision.id)[:8], 1):
        assert call("explain", "--run", str(name), "--json").json == told
    for name in (str(run), str(run)[:8]):
        assert call("explain", name, "--json").json == told


def test_an_event_is_shown_with_every_receipt(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "copy/shop", ORDERS)
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    paused = deploy(ledger, "paused/shop", ORDERS)
    ledger.writer.consumers.switch(paused.id, paused=True, now=NOON)
    (decision,) = update(ledger, ORDERS, 1, extra={"rows": 3})

    told = call("events", "show", str(event_id(1)), "--json").json

    assert [each["status"] for each in told["receipts"]] == ["consumed", "queued", "dropped"]
    assert told["receipts"][0]["decision_id"] == str(decision.id)
    assert call("explain", "--event", str(event_id(1)), "--json").json == told
    assert call("explain", "--event", "1", "--json").json == call("events", "show", "1", "--json").json == told
    out = call("events", "show", str(event_id(1))).out
    assert 'extra: {"rows": 3}' in out
    assert "● waits in the queue of report/shop" in out
