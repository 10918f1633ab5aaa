"""assetflow's own paths: what they show is what explanations and ledger say."""

import pytest

from assetflow.core.shapes import as_json
from assetflow.core.values.assets import AssetAlias
from assetflow.ledger import Holder, Ledger
from assetflow.ledger.lease import STOPPED
from assetflow.ledger.read.explanations import decision_explanation
from assetflow.ledger.read.freshness import HELD_UP
from tests.api.conftest import Api
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, event_id, update


@pytest.fixture
def shop(ledger: Ledger) -> Ledger:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    deploy(ledger, "ingest/hourly", None, produces=(ORDERS,))
    deploy(ledger, "copy/nightly", ORDERS, produces=(CUSTOMERS,))
    deploy(ledger, "late/nightly", AssetAlias("late"))
    deploy(ledger, "daily/nightly", ROLLED_UP)
    update(ledger, ORDERS, 1, aliases=("late",))
    update(ledger, HOURLY, 2, "2026-01-01T00:00:00")
    return ledger


def test_consumers_decisions_and_events_are_told_as_the_command_line_tells_them(api: Api, shop: Ledger) -> None:
    told = api.get("/api/v1/consumers/report/nightly").json()
    assert (told["name"], told["state"], told["queued"]) == ("report/nightly", "waiting", 1)
    assert "it still needs customers" in told["words"]
    assert [row["state"] for row in told["condition"]] == ["waiting", "satisfied", "waiting"]
    assert [each["name"] for each in api.get("/api/v1/consumers?search=LATE").json()["items"]] == ["late/nightly"]
    (decision,) = api.get("/api/v1/decisions", params={"consumer": "copy/nightly"}).json()["items"]
    record = shop.reader.decisions.find(consumer=3)[0]
    assert api.get(f"/api/v1/decisions/{decision['id']}").json() == as_json(decision_explanation(shop.reader, record))
    shop.writer.decisions.launched(record.id, event_id(77), NOON)
    assert api.get(f"/api/v1/runs/{event_id(77)}").json()["id"] == decision["id"]
    told = api.get(f"/api/v1/events/{event_id(1)}").json()
    assert told["event"]["uri"] == ORDERS.uri
    receipts = api.get(f"/api/v1/events/{event_id(1)}/receipts").json()["items"]
    assert (receipts, told["total_receipts"]) == (told["receipts"], 3)
    statuses = {"report/nightly": "queued", "copy/nightly": "consumed", "late/nightly": "consumed"}
    assert {each["consumer"]: each["status"] for each in receipts} == statuses


# tests/api/test_own_shapes.py reads every list in pages.


def test_queues_are_shown_and_emptied_with_a_reason_partitions_by_their_key(api: Api, shop: Ledger) -> None:
    path = "/api/v1/consumers/report/nightly/queue"
    assert [each["sequence"] for each in api.get(path).json()["items"]] == [1]
    assert api.delete(path).status_code == 422
    assert api.delete(path, params={"why": "a test", "by": "me"}).json() == {"removed": 1}
    (receipt,) = [each for each in shop.reader.receipts.of_event(event_id(1)) if each.receipt.consumer == 1]
    assert (receipt.receipt.by, receipt.receipt.why) == ("me", "a test")
    path = "/api/v1/consumers/daily/nightly"
    assert api.get(f"{path}/partitions").json() == {"items": ["2026-01-01"], "next": None}
    told = api.get(f"{path}/partitions/2026-01-01").json()
    assert (told["queued"], len(told["missing"])) == (1, 23)
    refused = api.delete(f"{path}/queue", params={"why": "x"})
    assert (refused.status_code, refused.json()["rule"]) == (422, "3.7")
    assert api.delete(f"{path}/queue", params={"why": "x", "target_key": "2026-01-01"}).json() == {"removed": 1}
    assert shop.reader.queues.pending(5) == {}


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/api/v1/asset?asset=s3://lake/ordes", ORDERS.uri),
        ("/api/v1/lineage?focus=custmers", "customers"),
        ("/api/v1/consumers/report/nightli", "report/nightly"),
        ("/api/v2/dags/report.nightl/assets/queuedEvents", "report/nightly"),
        ("/api/v2/assets/queuedEvent/s3%3A%2F%2Flake%2Fordes", ORDERS.uri),
    ],
)
@pytest.mark.usefixtures("shop")
def test_what_is_unknown_is_404_with_what_is_near(api: Api, path: str, near: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 404
    assert near in answer.json()["fix"]


def test_a_scenario_is_simulated_within_its_limits(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = {"name": "one", "consumers": {"c": "s3://b/a"}, "steps": [{"event": "s3://b/a"}, {"tick": True}]}
    assert [run["consumer"] for run in api.post("/api/v1/simulate", json=scenario).json()["runs"]] == ["c"]
    assert api.post("/api/v1/simulate", json=scenario | {"steps": [{"explode": 1}]}).status_code == 422
    assert api.post("/api/v1/simulate", json=scenario | {"steps": [{"tick": True}] * 3000}).status_code == 413
    monkeypatch.setattr("assetflow.api.v1.simulation.SECONDS", 0.01)
    scenario = {"name": "one", "consumers": {}, "steps": []}
    answer = api.post("/api/v1/simulate", json=scenario)
    assert (answer.status_code, "longer" in answer.json()["detail"]) == (413, True)


def test_ready_says_what_is_missing_and_what_holds_up_an_evaluator(api: Api, ledger: Ledger) -> None:
    answer = api.get("/api/v1/ready")
    assert answer.status_code == 503
    assert answer.json()["problems"] == [str(STOPPED)]
    ledger.writer.lease.acquire(Holder.this_process(event_id(1)), seconds=3600)
    assert api.get("/api/v1/ready").status_code == 200
    since = NOON.isoformat()
    ledger.writer.set_cursor(HELD_UP, [{"name": "ledger", "since": since, "reason": "the database refuses: odd"}])
    answer = api.get("/api/v1/ready")
    assert (answer.status_code, answer.json()["problems"]) == (503, ["ledger: the database refuses: odd"])


def test_a_waiting_decision_is_given_up_once(api: Api, shop: Ledger) -> None:
    (record,) = shop.reader.decisions.find(consumer=3)
    path = f"/api/v1/decisions/{record.id}/give-up"
    assert api.post(path, json={}).status_code == 422
    answer = api.post(path, json={"why": "never sent", "by": "ann"})
    assert answer.json() == {"id": str(record.id), "status": "undeliverable"}
    run = api.get(f"/api/v1/decisions/{record.id}").json()["run"]
    assert (run["status"], run["error"]) == ("undeliverable", "given up by ann: never sent")
    assert api.post(path, json={"why": "again"}).status_code == 404
