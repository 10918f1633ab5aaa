"""assetflow's own paths: what they show is what explanations and ledger say."""

from datetime import timedelta

import pytest

from assetflow import AssetWatcher
from assetflow.core.shapes import as_json
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.ledger import Holder, Ledger
from assetflow.ledger.lease import STOPPED
from assetflow.ledger.read.explanations import decision_explanation
from assetflow.ledger.read.freshness import HELD_UP
from assetflow.watchers import MessageQueueTrigger
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
    assert {each["consumer"]: each["status"] for each in receipts} == {
        "report/nightly": "queued",
        "copy/nightly": "consumed",
        "late/nightly": "consumed",
    }


# tests/api/test_own_shapes.py reads every list in pages.


def test_8_13_freshness_is_listed_with_its_changes(api: Api, ledger: Ledger) -> None:
    fresh = Asset(ORDERS.uri, freshness=FreshnessPolicy(timedelta(minutes=30), warn_after=timedelta(minutes=5)))
    deploy(ledger, "report/nightly", fresh, now=NOON - timedelta(hours=1))
    update(ledger, ORDERS, -40)
    ledger.writer.clock.run(NOON, NOON)
    (told,) = api.get("/api/v1/freshness").json()["items"]
    assert (told["uri"], told["state"], told["maximum_lag"]) == (ORDERS.uri, "fail", 1800)
    assert told["lag"] >= 2400
    assert (told["since"], told["data_time"]) == ("2026-01-01T11:50:00Z", "2026-01-01T11:20:00Z")
    changes = api.get("/api/v1/freshness/changes").json()["items"]
    times = {each["state"]: each["at"] for each in changes}
    assert times == {"fail": "2026-01-01T11:50:00Z", "warn": "2026-01-01T11:25:00Z"}
    assert api.get("/api/v1/freshness/changes", params={"asset": "orders"}).json()["items"] == changes


def test_watchers_are_listed_paused_and_resumed(api: Api, ledger: Ledger) -> None:
    queue = MessageQueueTrigger("amqp://me:${PASSWORD}@mq.internal", queue="orders")
    deploy(ledger, "report/nightly", Asset(ORDERS.uri, watchers=[AssetWatcher("orders queue", queue)]))
    ledger.writer.watchers.set_state(["orders queue"], "failing", "no such queue", NOON)
    (told,) = api.get("/api/v1/watchers").json()["items"]
    assert (told["name"], told["watches"]) == ("orders queue", "queue orders of amqp://mq.internal")
    assert (told["assets"], told["state"], told["error"]) == ([ORDERS.uri], "failing", "no such queue")
    for action, state in (("pause", "paused"), ("resume", "failing")):
        answer = api.post(f"/api/v1/watchers/orders%20queue/{action}", json={})
        assert answer.json() == {"name": "orders queue", "paused": state == "paused"}
        assert [each["state"] for each in api.get("/api/v1/watchers").json()["items"]] == [state]
    assert api.post("/api/v1/watchers/nothing/pause", json={}).status_code == 404


def test_of_very_many_events_of_a_run_the_oldest_are_told(
    api: Api, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assetflow.ledger.read.explanations.MOST_EVENTS", 3)
    monkeypatch.setattr("assetflow.core.explain.decisions.MOST_EVENTS", 3)
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    for minute in range(9):
        update(ledger, ORDERS, minute)
    (decision,) = update(ledger, CUSTOMERS, 10)
    told = api.get(f"/api/v1/decisions/{decision.id}").json()
    assert (told["consumed"], told["completed_by"]) == (10, str(event_id(10)))
    assert [each["sequence"] for each in told["events"]] == [1, 2, 10]
    assert "with 10 events" in told["words"]


def test_events_are_read_in_pages_both_ways(api: Api, ledger: Ledger) -> None:
    for minute in range(5):
        update(ledger, ORDERS, minute)

    def walk(**given: str | int) -> list[int]:
        seen: list[int] = []
        token: str | None = None
        while True:
            params = {"limit": 2, **given} | ({} if token is None else {"page": token})
            page = api.get("/api/v1/events", params=params).json()
            seen += [each["sequence"] for each in page["items"]]
            token = page["next"]
            if token is None:
                return seen

    assert walk() == [5, 4, 3, 2, 1]
    assert walk(order="asc") == [1, 2, 3, 4, 5]
    assert walk(uri="S3://lake/orders/", before="2026-01-01T12:02:00Z") == [2, 1]
    assert walk(offset=1) == [4, 3, 2, 1]
    assert walk(name="orders", after="2026-01-01T12:03:00Z") == [5]
    assert api.get("/api/v1/events/count").json() == {"count": 5}


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


def test_partitions_of_an_asset(api: Api, shop: Ledger) -> None:
    update(shop, HOURLY, 3, "2026-01-01T01:00:00")
    update(shop, HOURLY, 4, "2026-01-01T00:00:00")
    first, second = api.get("/api/v1/assets/hourly/partitions").json()["items"]
    assert (first["partition_key"], first["events"], first["last_event"]) == ("2026-01-01T00:00:00", 2, 4)
    assert second["partition_key"] == "2026-01-01T01:00:00"


@pytest.mark.usefixtures("shop")
def test_lineage_keeps_scheduling_and_data_apart(api: Api) -> None:
    def edges(**given: str | int) -> set[tuple[str, str, str]]:
        graph = api.get("/api/v1/lineage", params={"focus": "orders", "depth": 1, **given}).json()
        return {(each["source"], each["target"], each["kind"]) for each in graph["edges"]}

    orders, scheduling = f"asset:{ORDERS.uri}", {"data": "false"}
    assert edges(**scheduling) == {
        (orders, "flow:report/nightly", "schedules"),
        (orders, "flow:copy/nightly", "schedules"),
        (orders, "alias:late", "links"),
        ("flow:ingest/hourly", orders, "produces"),
    }
    assert ("flow:copy/nightly", f"asset:{CUSTOMERS.uri}", "produces") in edges(depth=2, **scheduling)
    assert edges(scheduling="false") == {("flow:ingest/hourly", orders, "produces"), (orders, "alias:late", "links")}
    assert ("flow:copy/nightly", f"asset:{CUSTOMERS.uri}", "produces") in edges(depth=2)
    nodes = {each["id"]: each for each in api.get("/api/v1/lineage", params={"focus": "orders"}).json()["nodes"]}
    assert (nodes[orders]["name"], nodes[orders]["group"], nodes[orders]["state"]) == ("orders", "shop", "updated")
    assert nodes["flow:report/nightly"]["state"] == "never run"
    small = api.get("/api/v1/lineage", params={"focus": "orders", "depth": 9, "limit": 2}).json()
    assert (len(small["nodes"]), small["truncated"], small["nodes"][0]["more"]) == (2, True, True)


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


@pytest.mark.parametrize("root", ["/api/v1", "/api/v2"])
def test_airflow_2_asks_by_uri(api: Api, shop: Ledger, root: str) -> None:
    uri = "s3%3A%2F%2Flake%2Forders"
    (queued,) = api.get(f"{root}/assets/queuedEvent/{uri}").json()["queued_events"]
    assert (queued["dag_id"], queued["asset_id"]) == ("report.nightly", 1)
    assert api.get(f"{root}/dags/report.nightly/assets/queuedEvent").json()["total_entries"] == 1
    assert api.get(f"{root}/dags/report.nightly/assets/queuedEvent/{uri}").json() == queued
    assert api.delete(f"{root}/dags/report.nightly/assets/queuedEvent/{uri}").status_code == 204
    assert api.delete(f"{root}/assets/queuedEvent/{uri}").status_code == 404
    assert shop.reader.queues.events(1) == []


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
