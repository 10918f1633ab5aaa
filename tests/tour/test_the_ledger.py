"""What the ledger holds at any line, and what it says of it."""

from pathlib import Path
from uuid import UUID

import pytest

from assetflow.core.rules.fold import record_and_pass
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.ledger import Ledger
from tests.cli.conftest import Call
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, event_id, update


def test_a_process_that_dies_in_the_middle_leaves_nothing_behind(ledger: Ledger) -> None:
    """The update, its receipts and the decision are one transaction."""
    deploy(ledger, "alert/shop", ORDERS)
    event = AssetEvent(UUID(int=1), ORDERS, NOON, Origin("api"))

    def die_after_the_decision() -> None:
        with ledger.transaction(NOON) as unit:
            _, (decision,) = record_and_pass(unit.state, Recording(event.id, (event,)), NOON)
            raise KeyboardInterrupt(decision.id)

    with pytest.raises(KeyboardInterrupt):
        die_after_the_decision()
    assert (ledger.reader.events.count(), ledger.reader.decisions.find()) == (0, [])


def test_a_rebuilt_ledger_makes_the_same_decision(tmp_path: Path) -> None:
    """Its id is the idempotency key of the run: Prefect answers with the run that exists."""
    found: list[UUID] = []
    for name in ("lost.db", "rebuilt.db"):
        with Ledger.open(tmp_path / name, now=NOON) as ledger:
            deploy(ledger, "alert/shop", ORDERS)
            found += [decision.id for decision in update(ledger, ORDERS, 1)]
    assert len(found) == 2
    assert found[0] == found[1]


def test_explain_says_what_a_flow_is_waiting_for(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)
    told = call("explain", "report").out
    assert f"✔ orders  satisfied by event {event_id(1)}" in told
    assert "○ customers  waiting for an update" in told


def test_explain_says_why_a_run_was_started(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    update(ledger, ORDERS, 1)
    (decision,) = update(ledger, CUSTOMERS, 2)
    run = UUID(int=7)
    ledger.writer.decisions.launched(decision.id, run, NOON)
    told = call("explain", "--run", str(run), "--json").json
    assert [event["id"] for event in told["events"]] == [str(event_id(1)), str(event_id(2))]
