"""`explain` and `events show`: the one explanation, from a ledger."""

from uuid import uuid4

from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, event_id, update


def test_a_consumer_is_explained_with_what_satisfies_each_leaf(ledger: Ledger, call: Call) -> None:
    consumer = deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)
    told = call("explain", "report/shop", "--json").json
    for name in ("report", str(consumer.id), str(consumer.deployment_id)):
        assert call("explain", name, "--json").json == told
    out = call("explain", "report").out
    assert f"✔ orders  satisfied by event {event_id(1)}" in out
    assert "○ customers  waiting for an update" in out


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
