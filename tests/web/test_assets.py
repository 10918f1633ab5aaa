"""The pages of assets and events: what they show, and what their forms do."""

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx
import pytest

from assetflow import AssetWatcher
from assetflow.core.partitions import DayWindow, RollupMapper, StartOfDayMapper
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import CheckResult, Origin, Recording, SourceFlowRun, SourceTaskRun, event_by_hand
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.core.watchers.intake import WatcherIntake
from assetflow.errors import PrefectUnreachable
from assetflow.ledger import Ledger
from assetflow.watchers import FileTrigger, MessageQueueTrigger
from tests.api.fake_prefect import FakePrefect
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, deploy, event_id, update
from tests.web.conftest import MakeSite, Site
from tests.web.html import Page, read

ASSET = "/asset?asset=orders"
Materialize = Callable[..., httpx.Response]


def test_an_asset_shows_its_watchers_and_whence_an_update_came(site: Site, ledger: Ledger) -> None:
    queue = MessageQueueTrigger("amqp://me:${PASSWORD}@mq.internal", queue="orders")
    deploy(ledger, "report/nightly", Asset(ORDERS.uri, watchers=[AssetWatcher("orders-queue", queue)]))
    deploy(ledger, "other/nightly", Asset(CUSTOMERS.uri, watchers=[AssetWatcher("landing", FileTrigger("/in/*"))]))
    event = event_by_hand(
        ORDERS, id=event_id(1), occurred=NOON, origin=Origin("watcher", by="RabbitMQ orders, message 17")
    )
    intake = WatcherIntake("amqp://mq.internal:5672 orders", [Recording(uuid4(), (event,))])
    intake.makers[event.id] = ("orders-queue",)
    ledger.writer.watchers.record(intake, NOON)
    ledger.writer.watchers.set_state(["orders-queue"], "failing", "there is no queue `orders`", NOON)
    ledger.writer.watchers.set_lag({"orders-queue": 5})
    page = site.page(f"/asset?asset={quote(ORDERS.uri, safe='')}")
    assert "orders-queue failing" in page.text
    assert "queue orders of amqp://mq.internal there is no queue orders. 1 update, the last" in page.text
    assert "5 waiting" in page.text
    assert "landing" not in page.text
    assert "RabbitMQ orders, message 17" in page.text
    assert "RabbitMQ orders, message 17" in site.page(f"/events/{event_id(1)}").text


def test_assets_are_listed_with_who_has_to_do_with_them(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    deploy(ledger, "ingest/hourly", Asset("s3://lake/landing"), produces=(ORDERS,))
    update(ledger, ORDERS, -5, aliases=("fresh",))
    page = site.page("/assets")
    (row,) = [row for row in page.rows if row.startswith("orders")]
    assert row == "orders s3://lake/orders shop 5 min ago ingest/hourly report/nightly fresh"
    assert "/asset?asset=s3%3A%2F%2Flake%2Forders" in page.links
    assert "/consumers/report/nightly" in page.links
    assert [each["datetime"] for each in page.named("time")] == ["2026-01-01T11:55:00Z"]


def test_htmx_gets_the_list_alone_and_an_unknown_asset_is_not_found(site: Site, ledger: Ledger) -> None:
    update(ledger, ORDERS, 0)
    part = site.get("/assets?search=ord", headers={"hx-request": "true"})
    assert "<html" not in part.text
    assert "orders" in part.text
    assert "HX-Request" in part.headers["vary"]
    whole = site.get("/assets", headers={"hx-request": "true", "hx-history-restore-request": "true"})
    assert "<html" in whole.text
    answer = site.get("/asset?asset=ordrs")
    assert answer.status_code == 404
    assert "/asset?asset=orders" in site.page("/asset?asset=ordrs").links


def test_an_asset_with_its_events_and_receipts_at_a_glance(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    deploy(ledger, "audit/all", ORDERS)
    run = SourceFlowRun(uuid4(), "calm-fox", flow_name="ingest", deployment_name="hourly")
    origin = Origin("task", SourceTaskRun(uuid4(), "load-a1b"), run)
    update(ledger, ORDERS, -3, origin=origin, extra={"rows": 12, "api_token": "sk-1"})
    page = site.page(ASSET)
    assert page.title == "orders · assetflow"
    assert page.rows[1] == (
        '3 min ago calm-fox ingest/hourly · load-a1b {"rows": 12, "api_token": "[redacted]"} consumed queued'
    )
    assert f"/events/{event_id(-3)}" in page.links
    assert "sk-1" not in site.get(ASSET).text


def test_partitions_are_a_map_with_gaps(site: Site, ledger: Ledger) -> None:
    noon = {hour: f"2026-01-01T{hour:02}" for hour in (8, 9, 11)}
    for hour, key in noon.items():
        update(ledger, HOURLY, (hour - 12) * 60, key)
    page = site.page("/asset/partitions?asset=hourly")
    assert "3 of 4 keys of this range updated" in page.text
    assert "Nothing is missing. Nothing expects the 1 key that was never updated." in page.text
    cells = {given["title"] for _, given in page.tags if "cell" in given.get("class", "").split()}
    assert cells == {f"{key}: updated" for key in noon.values()} | {"2026-01-01T10: never updated"}
    of_key = site.page("/asset?asset=hourly&key=2026-01-01T09")
    assert len(of_key.rows) == 2
    assert "Events of 2026-01-01T09" in of_key.text


DAILY = RollupMapper(upstream_mapper=StartOfDayMapper(input_format="%Y-%m-%dT%H"), window=DayWindow())


def states_of(page: Page) -> dict[str, str]:
    """The keys of a map with what the map says about them."""
    cells = (given["title"] for _, given in page.tags if "cell" in given.get("class", "").split())
    return {key: words for key, _, words in (title.partition(": ") for title in cells)}


def test_a_key_is_missing_if_a_flow_waits_for_it(site: Site, ledger: Ledger) -> None:
    daily = deploy(ledger, "daily/shop", PartitionedAssetTimetable(assets=HOURLY, default_partition_mapper=DAILY))
    for number, key in enumerate(("2025-12-20T05", "2026-01-01T08", "2026-01-01T10")):
        update(ledger, HOURLY, number - 100, key)
    # The first day was removed from the queue, so that nothing waits for its other hours.
    ledger.writer.queues.remove(daily.id, target_key="2025-12-20", now=NOON)
    states = states_of(site.page("/asset/partitions?asset=hourly"))
    missing = [f"2026-01-01T{hour:02}" for hour in (*range(8), 9, 11)]
    assert [key for key, words in states.items() if words == "expected, and never updated"] == missing
    assert states["2025-12-31T23"] == "never updated"


def test_create_event_records_and_shows_what_became_of_it(make_site: MakeSite, ledger: Ledger) -> None:
    deploy(ledger, "audit/all", ORDERS)
    woken: list[str] = []
    site = make_site(on_recorded=lambda: woken.append("woken"))
    answer = site.submit("/asset/events", ASSET, "/asset/events", extra='{"rows": 3}', partition_key="")
    assert answer.status_code == 303
    (event,) = ledger.reader.events.find()
    assert (event.uri, event.extra, event.partition_key, event.origin.kind) == (ORDERS.uri, {"rows": 3}, None, "api")
    assert answer.headers["location"] == f"/events/{event.id}"
    assert woken == ["woken"]
    assert site.page(f"/events/{event.id}").rows[1].startswith("consumed audit/all Consumed, run not started")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"extra": "{"}, "Not valid JSON (line 1, column 2)"),
        ({"extra": "[1]"}, "Not a JSON object"),
        ({"extra": "[" * 100_000}, "Not valid JSON"),
        ({"extra": '{"x": NaN}'}, "Extra.x is not JSON: it is NaN"),
        ({"extra": '{"x": "' + "y" * 70_000 + '"}'}, "the limit is 65536"),
        ({"partition_key": "   "}, "The partition key is blank"),
        ({"partition_key": "k" * 251}, "the limit is 250"),
    ],
)
def test_a_form_that_is_wrong_is_shown_with_the_reason(
    site: Site, ledger: Ledger, fields: dict[str, str], told: str
) -> None:
    deploy(ledger, "audit/all", ORDERS)
    answer = site.submit("/asset/events", ASSET, "/asset/events", **({"extra": "{}", "partition_key": ""} | fields))
    assert answer.status_code == 422
    page = read(answer.text)
    assert told.lower() in page.text.lower()
    assert [given["name"] for _, given in page.tags if "autofocus" in given] == [*fields]
    assert [given["id"] for given in page.named("dialog") if "data-open" in given] == ["create-event"]
    assert not ledger.reader.events.find()


@pytest.mark.rule("4.5")
def test_an_event_that_is_sent_twice_is_recorded_once(site: Site, ledger: Ledger) -> None:
    update(ledger, ORDERS, 1)
    fields = site.page(ASSET).form("/asset/events")
    first, second = (site.post("/asset/events", data=fields).headers["location"] for _ in range(2))
    assert first == second
    assert len(ledger.reader.events.find()) == 2


@pytest.fixture
def maker(ledger: Ledger) -> UUID:
    """A deployment that makes orders, which were updated before."""
    update(ledger, ORDERS, 0)
    return deploy(ledger, "ingest/hourly", Asset("s3://lake/landing"), produces=(ORDERS,)).deployment_id


@pytest.fixture
def prefect() -> FakePrefect:
    """Notes the runs that are asked for."""
    properties = {
        "day": {"type": "string", "position": 0},
        "full": {"type": "boolean", "position": 1, "default": False, "description": "Load everything"},
        "triggering_asset_events": {"position": 2},
    }
    flow = {"parameter_openapi_schema": {"properties": properties}, "parameters": {"day": "today"}}
    return FakePrefect(lambda _, body: flow if body is None else {"id": str(UUID(int=7))})


@pytest.fixture
def materialize(make_site: MakeSite, prefect: FakePrefect) -> Materialize:
    """Fills in the form of orders, and sends it."""
    return partial(make_site(prefect=prefect.connect).submit, "/asset/materialize", ASSET, "/asset/materialize")


def test_materialize_runs_its_deployment(
    site: Site, maker: UUID, prefect: FakePrefect, materialize: Materialize
) -> None:
    answer = materialize(parameters='{"full": true}', partition_key="k")
    assert answer.status_code == 303
    ((path, body),) = prefect.asked
    assert path == f"/deployments/{maker}/create_flow_run"
    assert body["parameters"] == {"full": True}
    assert answer.headers["location"].endswith(f"started={UUID(int=7)}")
    assert "Look at it in Prefect" in site.page(answer.headers["location"]).text


@pytest.mark.usefixtures("maker")
def test_the_flows_parameters_become_fields(
    make_site: MakeSite, prefect: FakePrefect, materialize: Materialize
) -> None:
    site = make_site(prefect=prefect.connect)
    part = read(site.get(f"/asset/materialize/parameters?asset={ORDERS.uri}", headers={"hx-request": "true"}).text)
    assert [each["name"] for each in part.named("input")] == ["parameter:day", "parameter:full"]
    assert 'day Default: "today". full Load everything. Default: false.' in part.text
    refused = materialize(**{"parameter:day": "monday", "parameter:full": "maybe"})
    assert "'maybe' is not true or false. Write true or false." in read(refused.text).text
    assert 'value="monday"' in refused.text
    assert materialize(**{"parameter:day": "monday", "parameter:full": ""}).status_code == 303
    assert [body["parameters"] for _, body in prefect.asked] == [{"day": "monday"}]


@pytest.mark.usefixtures("maker")
def test_when_nothing_can_be_started_the_form_says_so(prefect: FakePrefect, materialize: Materialize) -> None:
    answer = materialize(parameters='{"nope": 1}')
    assert answer.status_code == 422
    assert "The flow has no parameter 'nope'. It takes day and full." in read(answer.text).text
    assert prefect.asked == []
    prefect.error = PrefectUnreachable("Prefect does not answer", fix="Check that the Prefect server is running")
    answer = materialize()
    assert answer.status_code == 422
    assert "Prefect does not answer. Check that the Prefect server is running" in answer.text


def test_an_event_tells_where_it_came_from_and_every_receipt(site: Site, ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    deploy(ledger, "audit/all", AssetAlias("fresh"))
    run = SourceFlowRun(uuid4(), "calm-fox", flow_name="ingest", deployment_name="hourly", parameters={"password": "x"})
    checks = (CheckResult("at_least", "error", True, "at least 1 row", found=3),)
    checks += (CheckResult("sane", "warn", False, "no <b>", found=2),)
    fields: dict[str, Any] = {"aliases": ("fresh",), "metrics": {"rows": 1234}, "checks": checks}
    update(ledger, ORDERS, 1, origin=Origin("task", None, run), **fields)
    page = site.page(f"/events/{event_id(1)}")
    assert "flow run calm-fox (ingest/hourly)" in page.text
    assert page.rows[1].startswith("queued report/nightly Waits in the queue")
    assert page.rows[2].startswith("consumed audit/all")
    assert "Rows 1,234" in page.text
    assert "Check at_least: found 3, wanted at least 1 row" in page.text
    assert "Check failed sane: found 2, wanted no <b>" in page.text
    assert '"password": "[redacted]"' in page.text
    assert f"/runs/{run.id}" in page.links
