"""Which flows run, and with which updates: a function of what was recorded, computed here without a server."""

from tests.examples.simulated import answer, runs, updates

ORDERS, CUSTOMERS = "s3://shop/orders", "s3://shop/customers"
REPORT = {"report": [ORDERS, CUSTOMERS]}


def test_a_flow_runs_when_its_data_has_been_updated() -> None:
    assert runs(REPORT, updates(ORDERS, ORDERS)) == {"report": []}
    assert runs(REPORT, updates(ORDERS, ORDERS, CUSTOMERS)) == {"report": [[ORDERS, ORDERS, CUSTOMERS]]}


def test_nothing_runs_twice() -> None:
    """An update that is sent again has its id, and a run has consumed its updates."""
    twice = [{"event": ORDERS, "id": "monday"}, {"event": ORDERS, "id": "monday"}]
    assert runs({"alert": ORDERS}, twice) == {"alert": [[ORDERS]]}
    assert runs(REPORT, updates(ORDERS, CUSTOMERS, CUSTOMERS)) == {"report": [[ORDERS, CUSTOMERS]]}


def test_load_does_not_change_what_runs() -> None:
    quiet = updates(ORDERS, CUSTOMERS, ORDERS)
    busy = [step for update in quiet for step in (*updates(*["s3://shop/clicks"] * 50), update)]
    found = runs(REPORT | {"clicks": "s3://shop/clicks"}, busy)
    assert len(found["clicks"]) == 150
    assert found["report"] == runs(REPORT, quiet)["report"] == [[ORDERS, CUSTOMERS]]


def test_each_update_has_a_receipt_for_each_flow() -> None:
    flows = REPORT | {"alert": ORDERS, "paused": {"schedule": ORDERS, "paused": True}}
    found = answer(flows, updates(ORDERS), receipts=True)["receipts"]
    statuses = {"alert": "consumed", "paused": "dropped", "report": "queued"}
    assert {each["consumer"]: each["status"] for each in found} == statuses
