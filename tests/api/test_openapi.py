"""The OpenAPI document, tried out: no failure and no undocumented answer, whatever is sent."""

import inspect

import pytest

from assetflow.core.values.assets import AssetAlias
from assetflow.ledger import Ledger
from tests.api.conftest import Api
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, update

pytestmark = pytest.mark.timeout(300)


def test_every_operation_is_documented_with_its_problems(api: Api) -> None:
    document = api.get("/api/openapi.json").json()
    operations = [each for path in document["paths"].values() for each in path.values()]
    assert len(operations) > 45
    for operation in operations:
        assert operation["summary"]
        assert operation["description"]
        problems = {
            status for status, each in operation["responses"].items() if "application/problem+json" in str(each)
        }
        assert {"400", "401", "403"} <= problems
    assert "example" in str(document["components"]["schemas"]["EventIn"])
    assert "HTTPValidationError" not in str(document)


def test_an_unknown_parameter_is_refused_on_every_own_path_and_ignored_on_airflows(api: Api) -> None:
    document = api.get("/api/openapi.json").json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if not path.startswith("/api/v"):
                continue
            address = path.replace("{", "").replace("}", "")
            answer = api.request(method.upper(), f"{address}?no_such=1", json={} if method == "post" else None)
            refused = answer.status_code == 422 and answer.json()["where"] == "query.no_such"
            assert refused == path.startswith("/api/v1/"), (method, path)
            known = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
            assert not refused or all(name in answer.json()["fix"] for name in known)


def test_what_airflows_client_can_send_is_carried_out(api: Api) -> None:
    from airflow_client.client import AssetApi, DagRunApi

    document = api.get("/api/openapi.json").json()
    compared = 0
    known = {"_request_timeout", "_request_auth", "_content_type", "_headers", "_host_index", "self"}
    for operations in document["paths"].values():
        for operation in operations.values():
            name = operation["operationId"].removeprefix("airflow_")
            call = getattr(AssetApi, name, None) or getattr(DagRunApi, name, None)
            if call is None or not operation["operationId"].startswith("airflow_"):
                continue
            sent = {each for each in inspect.signature(call).parameters if each not in known and "body" not in each}
            assert sent == {each["name"] for each in operation.get("parameters", ())}, name
            compared += 1
    assert compared > 10


@pytest.mark.long
def test_no_failure_and_no_undocumented_answer(api: Api, ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    deploy(ledger, "late/nightly", AssetAlias("late"), produces=(CUSTOMERS,))
    deploy(ledger, "daily/nightly", ROLLED_UP)
    update(ledger, ORDERS, 1, aliases=("late",))
    update(ledger, HOURLY, 2, "2026-01-01T00:00:00")
    ledger.writer.events.refuse({"x": 1}, "no URI", "2.2", "api", None, NOON)
    # Schemathesis takes seconds to import, in each process that only collects this test.
    from tests.api.schema_calls import call_everything

    call_everything(api.get("/api/openapi.json").json(), str(api.base_url).rstrip("/"))
