"""Runs that somebody starts through the API: what Prefect is asked for, and what they would lead to."""

from uuid import UUID

import pytest

from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from tests.api.conftest import Api, MakeApi
from tests.api.fake_prefect import FakePrefect
from tests.cli.shop import ORDERS, deploy, update

REPORT = Asset("s3://lake/report", name="report")
RUN = "/api/v1/consumers/report/nightly/run"
MATERIALIZE = "/api/v1/assets/report/materialize"
RUN_ID = str(UUID(int=7))


@pytest.fixture
def prefect() -> FakePrefect:
    """Takes requests for runs as Prefect does, and keeps them."""
    flow = {"parameter_openapi_schema": {"properties": {"full": {"type": "boolean"}}}}
    return FakePrefect(lambda _, body: flow if body is None else {"id": RUN_ID, "name": body.get("name", "calm-fox")})


@pytest.fixture
def api(make_api: MakeApi, ledger: Ledger, prefect: FakePrefect) -> Api:
    deploy(ledger, "report/nightly", ORDERS, produces=(REPORT,))
    deploy(ledger, "board/nightly", REPORT)
    update(ledger, REPORT, 1)
    return make_api(prefect=prefect.connect)


def deployment_of(ledger: Ledger, name: str) -> UUID:
    found = ledger.reader.consumers.named(name)
    assert found is not None
    return found.consumer.deployment_id


def test_a_run_of_a_consumer_starts_with_its_parameters(api: Api, ledger: Ledger, prefect: FakePrefect) -> None:
    wanted = {"parameters": {"full": True}, "partition_key": "2026-01-01", "name": "by-hand"}
    answer = api.post(RUN, json=wanted).json()
    ((path, body),) = prefect.asked
    assert path == f"/deployments/{deployment_of(ledger, 'report/nightly')}/create_flow_run"
    assert (body["parameters"], body["name"], body["idempotency_key"]) == ({"full": True}, "by-hand", "by-hand")
    assert body["context"]["assetflow"]["partition_key"] == "2026-01-01"
    assert answer == {
        "consumer": "report/nightly",
        "flow_run_id": RUN_ID,
        "flow_run_name": "by-hand",
        "partition_key": "2026-01-01",
    }


def test_of_several_flows_the_request_names_one(api: Api, ledger: Ledger, prefect: FakePrefect) -> None:
    deploy(ledger, "other/nightly", ORDERS, produces=(REPORT,))
    refused = api.post(MATERIALIZE, json={})
    assert (refused.status_code, refused.json()["where"]) == (409, "body.producer")
    assert api.post(MATERIALIZE, json={"producer": "other/nightly"}).json()["producer"] == "other/nightly"
    assert [path for path, _ in prefect.asked] == [
        f"/deployments/{deployment_of(ledger, 'other/nightly')}/create_flow_run"
    ]


@pytest.mark.parametrize("path", [RUN, MATERIALIZE])
def test_a_preview_says_what_would_follow_and_starts_nothing(api: Api, prefect: FakePrefect, path: str) -> None:
    told = api.post(path, params={"preview": True}, json={}).json()
    assert [(each["consumer"], each["updates"]) for each in told["starts"]] == [("board/nightly", 1)]
    assert told["updates"] == [REPORT.uri]
    assert not prefect.asked


@pytest.mark.parametrize(
    ("path", "body", "status", "where"),
    [
        (RUN, {"partition_key": " "}, 422, "body.partition_key"),
        (RUN, {"parameters": {"text": "\x00"}}, 422, "body.parameters"),
        (RUN, {"conf": {}}, 422, "body.conf"),
        ("/api/v1/consumers/report/none/run", {}, 404, None),
        ("/api/v1/assets/none/materialize", {}, 404, None),
        (f"/api/v1/assets/{ORDERS.name}/materialize", {}, 404, "path.asset"),
    ],
)
def test_what_cannot_run_is_refused(
    api: Api, ledger: Ledger, prefect: FakePrefect, path: str, body: object, status: int, where: str | None
) -> None:
    update(ledger, ORDERS, 2)
    answer = api.post(path, json=body)
    assert (answer.status_code, answer.json().get("where")) == (status, where)
    assert not prefect.asked
