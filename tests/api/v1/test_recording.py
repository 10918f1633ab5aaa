"""Events by URI, and versions that were seen: each item reported, the good ones recorded, safe to send again."""

from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest
import respx
from httpx import Client

from assetflow.api.security import Access, Keys
from assetflow.authoring.observing import _told_to_api
from assetflow.core.values.assets import Asset
from assetflow.errors import ApiRefused
from assetflow.ledger import Ledger
from assetflow.prefect_io.rest import TaskApi
from tests.api.conftest import MakeApi
from tests.cli.shop import CUSTOMERS, ORDERS, deploy


def post(api: Client, *events: object) -> tuple[int, dict]:
    answer = api.post("/api/v1/events", json={"events": list(events)})
    return answer.status_code, answer.json()


def test_an_event_is_durable_when_answered(api: Client, ledger: Ledger) -> None:
    number = str(uuid4())
    status, told = post(api, {"uri": "S3://lake/orders/", "extra": {"rows": 3}, "id": number, "by": "night shift"})
    assert status == 200
    (item,) = told["items"]
    expected = {"index": 0, "status": "recorded", "id": number, "uri": "s3://lake/orders", "sequence": 1}
    assert {name: value for name, value in item.items() if value is not None} == expected
    (event,) = ledger.reader.events.find()
    assert (str(event.id), event.extra) == (number, {"rows": 3})
    assert (event.origin.kind, event.origin.by) == ("api", "night shift")


def test_rule_1_2_a_name_means_the_asset_that_has_it(api: Client, ledger: Ledger) -> None:
    deploy(ledger, "report/shop", Asset(ORDERS.uri, name="orders"))
    _, told = post(api, {"uri": "orders"}, {"uri": 5}, "orders")
    assert [each["uri"] for each in told["items"]] == [ORDERS.uri, None, None]
    observed = api.post("/api/v1/assets/orders/observations", json={"items": [{"data_version": "1"}]})
    assert observed.json()["uri"] == ORDERS.uri


def test_thousands_are_one_recording_with_one_pass(api: Client, ledger: Ledger) -> None:
    deploy(ledger, "report/both", ORDERS & CUSTOMERS)
    uris = [ORDERS.uri, CUSTOMERS.uri, *(f"s3://lake/{number}" for number in range(2000))]
    status, told = post(api, *({"uri": uri} for uri in uris))
    assert (status, told["recorded"], told["refused"]) == (200, 2002, 0)
    assert [each["consumer"] for each in told["decisions"]] == ["report/both"]
    assert len(ledger.reader.events.recordings()) == 1


def test_each_item_is_reported_and_the_good_ones_are_recorded(api: Client, ledger: Ledger) -> None:
    status, told = post(
        api,
        {"uri": ORDERS.uri, "id": "first"},
        {"uri": "airflow://x"},
        {"uri": ORDERS.uri, "extra": [1]},
        {"uri": ORDERS.uri, "partition_key": " "},
        "orders",
        {"uri": ORDERS.uri, "extra": {"text": "x" * 70_000}},
        {"uri": ORDERS.uri, "unheard": 1},
        {"uri": ORDERS.uri, "name": "日" * 1_000},
        {"uri": ORDERS.uri, "aliases": ["日" * 1_000]},
        {"uri": ORDERS.uri, "id": "first"},
    )
    assert status == 207
    assert [each["status"] for each in told["items"]] == ["recorded", *["refused"] * 8, "known"]
    places = ["uri", "extra", "partition_key", "event", "extra", "unheard", "uri", "aliases"]
    assert [each["where"] for each in told["items"][1:9]] == places
    assert told["items"][1]["rule"] == "1.5"
    assert told["items"][5]["code"] == "too-large"
    assert ledger.reader.events.count() == 1
    assert len(ledger.reader.events.refused()) == 7, "what is too large is not kept"


def test_a_uri_with_secrets_is_warned_of(api: Client, ledger: Ledger) -> None:
    _, told = post(api, {"uri": "https://me:secret@host/x?sig=1"})
    assert len(told["warnings"]) == 2
    assert "secret@" not in str(told)
    assert "me:" not in str(ledger.reader.events.find()[0].uri)


def test_beside_a_ledger_that_was_taken_over_updates_are_recorded_in_prefect(
    make_api: MakeApi, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, prefect = make_api(other_ledger=lambda: str(UUID(int=9))), "http://prefect.test/api"
    monkeypatch.setattr(TaskApi, "connect", lambda patience: TaskApi(prefect, patience=patience))
    with respx.mock:
        respx.route(host="127.0.0.1").pass_through()
        artifacts = respx.post(f"{prefect}/artifacts/").respond(201, json={"id": str(UUID(int=1))})
        events = respx.post(f"{prefect}/events").respond(204)
        status, told = post(api, {"uri": ORDERS.uri}, {"uri": CUSTOMERS.uri})
    assert (status, told["recorded"]) == (200, 2)
    assert "has taken over: the update goes through Prefect" in told["warnings"][0]
    assert [artifacts.call_count, events.call_count] == [1, 1], "one recording"
    assert ledger.reader.events.find() == []


def test_beside_a_ledger_that_was_taken_over_airflows_path_records_nothing(make_api: MakeApi, ledger: Ledger) -> None:
    """Its answer needs the number of the update, which only the ledger that decides can give."""
    deploy(ledger, "report/orders", ORDERS)
    answer = make_api(other_ledger=lambda: str(UUID(int=9))).post("/api/v2/assets/events", json={"asset_id": 1})
    assert answer.status_code == 503
    assert "has taken over; nothing is recorded" in answer.text
    assert ledger.reader.events.find() == []


PATH = f"/api/v1/assets/{quote(ORDERS.uri, safe='')}/observations"


def test_rule_8_2_only_items_with_another_version_are_updates(api: Client, ledger: Ledger) -> None:
    deploy(ledger, "report/shop", ORDERS)
    first = api.post(PATH, json={"items": [{"data_version": "1"}, {"partition_key": "k", "data_version": "1"}]})
    again = api.post(PATH, json={"items": [{"data_version": "2"}, {"partition_key": "k", "data_version": "1"}]})
    assert [len(each.json()["events"]) for each in (first, again)] == [2, 1]
    assert [each["consumer"] for each in first.json()["decisions"]] == ["report/shop"]
    found = [(each.partition_key, each.data_version) for each in ledger.reader.events.find()]
    assert found == [(None, "1"), ("k", "1"), (None, "2")]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"items": []},
        {"items": [{}]},
        {"items": [{"data_version": " "}]},
        {"items": [{"data_version": 5}]},
        {"items": [{"data_version": "1", "partition_key": " "}]},
    ],
)
def test_a_wrong_observation_changes_nothing(api: Client, ledger: Ledger, body: dict[str, Any]) -> None:
    assert api.post(PATH, json=body).status_code == 422
    assert ledger.reader.events.find() == []


def test_an_api_key_that_only_reads_leaves_the_observation_to_prefect(
    make_api: MakeApi, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = Keys("all-0123456789abcdef", "read-0123456789abcdef", "emit-0123456789abcdef")
    monkeypatch.setenv("ASSETFLOW_API_URL", str(make_api(Access(keys)).base_url))
    monkeypatch.setenv("ASSETFLOW_API_KEY", keys.read)
    assert not _told_to_api(ORDERS, {None: "1"})
    assert ledger.reader.events.count() == 0
    monkeypatch.setenv("ASSETFLOW_API_KEY", keys.emit)
    assert _told_to_api(ORDERS, {None: "1"})
    assert ledger.reader.events.count() == 1
    monkeypatch.setenv("ASSETFLOW_API_KEY", "wrong")
    with pytest.raises(ApiRefused, match="401"):
        _told_to_api(ORDERS, {None: "2"})
