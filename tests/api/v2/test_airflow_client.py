"""Airflow's own client package drives the Airflow paths."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from assetflow.ledger import Ledger
from tests.api.conftest import Api
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, deploy, update

if TYPE_CHECKING:
    # It takes seconds to import, and every process that runs tests collects this module.
    from airflow_client.client import ApiClient, AssetApi, DagRunApi
    from airflow_client.client.exceptions import ApiException
    from airflow_client.client.models.create_asset_events_body import CreateAssetEventsBody

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:airflow_client")


@pytest.fixture
def client(api: Api) -> Iterator[ApiClient]:
    from airflow_client.client import ApiClient, Configuration

    with ApiClient(Configuration(host=str(api.base_url).rstrip("/"), access_token="not needed")) as client:
        yield client
        client.rest_client.pool_manager.clear()


@pytest.fixture
def assets(client: ApiClient) -> AssetApi:
    from airflow_client.client import AssetApi

    return AssetApi(client)


@pytest.fixture
def runs(client: ApiClient) -> DagRunApi:
    from airflow_client.client import DagRunApi

    return DagRunApi(client)


def refusal(match: str | None = None) -> pytest.RaisesExc[ApiException]:
    from airflow_client.client.exceptions import ApiException

    return pytest.raises(ApiException, match=match)


def body(**given: Any) -> CreateAssetEventsBody:
    from airflow_client.client.models.create_asset_events_body import CreateAssetEventsBody

    return CreateAssetEventsBody(**given)


@pytest.fixture
def shop(ledger: Ledger) -> Ledger:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    deploy(ledger, "copy/nightly", ORDERS, produces=(CUSTOMERS,))
    update(ledger, ORDERS, 1, extra={"rows": 1})
    update(ledger, ORDERS, 2, extra={"rows": 2}, aliases=("late",))
    return ledger


def number_of(assets: AssetApi, uri: str) -> int:
    return next(each.id for each in assets.get_assets(limit=100).assets if each.uri == uri)


def test_assets_are_listed_and_filtered(shop: Ledger, assets: AssetApi) -> None:
    update(shop, HOURLY, 3, "k")
    everything = assets.get_assets(order_by=["-name"])
    assert [each.name for each in everything.assets] == ["orders", "hourly", "customers"]
    assert everything.total_entries == 3
    orders = everything.assets[0]
    assert (orders.uri, orders.group, [each.name for each in orders.aliases]) == (ORDERS.uri, "shop", ["late"])
    assert [each.dag_id for each in orders.scheduled_dags] == ["report.nightly", "copy.nightly"]
    assert orders.last_asset_event is not None
    assert orders.last_asset_event.id == 2
    assert [each.dag_id for each in everything.assets[2].producing_tasks] == ["copy.nightly"]

    def names(**given: Any) -> list[str]:
        return [each.name for each in assets.get_assets(**given).assets]

    assert names(name_pattern="ORD") == ["orders"]
    assert names(uri_pattern="lake/%r", order_by=["uri"]) == ["customers", "hourly", "orders"]
    assert names(uri_prefix_pattern="s3://lake/h") == ["hourly"]
    assert names(uri_prefix_pattern="S3") == []
    assert names(dag_ids=["copy.nightly"], order_by=["name"]) == ["customers", "orders"]
    assert names(dag_ids=["nobody"]) == []
    assert names(limit=1, offset=1, order_by=["name"]) == ["hourly"]
    assert assets.get_asset(orders.id) == orders


def test_events_are_created_and_listed(shop: Ledger, assets: AssetApi) -> None:
    number = number_of(assets, ORDERS.uri)
    made = assets.create_asset_event(body(asset_id=number, extra={"rows": 3}))
    assert made.extra == {"rows": 3, "from_rest_api": True}
    assert (made.asset_id, made.uri, made.name) == (number, ORDERS.uri, "orders")
    assert [(run.dag_id, run.state, run.triggering) for run in made.created_dagruns] == [
        ("copy.nightly", "queued", True)
    ]
    assert shop.reader.events.find(newest_first=True, limit=1)[0].extra == {"rows": 3}, "it is no part of the extra"
    found = assets.get_asset_events(asset_id=number, order_by=["-timestamp"])
    assert (found.total_entries, [each.id for each in found.asset_events]) == (3, [3, 2, 1])
    assert [each.id for each in assets.get_asset_events(limit=1, offset=1).asset_events] == [2]
    later = assets.get_asset_events(timestamp_gt=NOON + timedelta(minutes=1), timestamp_lte=datetime.now(UTC))
    assert [each.id for each in later.asset_events] == [2, 3]
    assert assets.get_asset_events(name_pattern="nothing").total_entries == 0


@pytest.mark.rule("3.3")
@pytest.mark.usefixtures("shop")
def test_a_key_goes_to_partitioned_consumers_only(assets: AssetApi) -> None:
    made = assets.create_asset_event(body(asset_id=1, partition_key="2026-01-01"))
    assert (made.partition_key, made.created_dagruns) == ("2026-01-01", [])


def test_queued_events_are_read_and_deleted(shop: Ledger, assets: AssetApi) -> None:
    number = number_of(assets, ORDERS.uri)
    (queued,) = assets.get_asset_queued_events(number).queued_events
    expected = ("report.nightly", number, NOON + timedelta(minutes=1))
    assert (queued.dag_id, queued.asset_id, queued.created_at) == expected
    assert assets.get_dag_asset_queued_events("report.nightly").total_entries == 1
    deployment = str(shop.reader.consumers.all()[0].consumer.deployment_id)
    assert assets.get_dag_asset_queued_event(deployment, number) == queued
    assets.delete_asset_queued_events(number, before=(NOON + timedelta(minutes=2)).isoformat())
    assert [event.sequence for event in shop.reader.queues.events(1)] == [2]
    for dag, before in (("copy.nightly", None), ("report.nightly", NOON.isoformat())):
        with refusal() as refused:
            assets.get_dag_asset_queued_events(dag, before=before)
        assert refused.value.status == 404
    assets.delete_dag_asset_queued_event("report.nightly", number)
    assert shop.reader.queues.events(1) == []
    with refusal() as refused:
        assets.delete_asset_queued_events(number)
    assert refused.value.status == 404
    update(shop, CUSTOMERS, 5)
    assert len(shop.reader.decisions.find(consumer=1)) == 0, "the update before was removed"
    assets.delete_dag_asset_queued_events("report.nightly")
    assert shop.reader.queues.events(1) == []


def test_what_a_run_consumed(shop: Ledger, runs: DagRunApi) -> None:
    (decision,) = [each for each in update(shop, CUSTOMERS, 3) if each.consumer == 1]
    run = uuid4()
    shop.writer.decisions.launched(decision.id, run, NOON)
    found = runs.get_upstream_asset_events("report.nightly", str(run))
    assert (found.total_entries, [each.id for each in found.asset_events]) == (3, [1, 2, 3])
    assert [run.triggering for run in found.asset_events[0].created_dagruns if run.dag_id == "report.nightly"] == [
        False
    ]
    assert found.asset_events[2].created_dagruns[0].run_id == str(run)
    for dag, number in (("copy.nightly", run), ("report.nightly", UUID(int=1)), ("nobody", run)):
        with refusal() as refused:
            runs.get_upstream_asset_events(dag, str(number))
        assert refused.value.status == 404


@pytest.mark.parametrize("given", [{"order_by": ["size"]}, {"order_by": ["-"]}])
@pytest.mark.usefixtures("shop")
def test_what_cannot_be_is_refused(assets: AssetApi, given: dict[str, Any]) -> None:
    with refusal() as refused:
        assets.get_assets(**given)
    assert refused.value.status == 422
    with refusal() as refused:
        assets.create_asset_event(body(asset_id=99))
    assert refused.value.status == 404
