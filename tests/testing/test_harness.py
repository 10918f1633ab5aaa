"""The harness, as its documentation tells of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assetflow import Asset, flow, task, triggering_asset_events
from assetflow.errors import UnknownConsumer
from assetflow.testing import Harness, harness
from tests.environment.prefect_server import PrefectServer

pytestmark = pytest.mark.prefect

ORDERS = Asset("s3://harness/orders")
CUSTOMERS = Asset("s3://harness/customers")
REPORT = Asset("s3://harness/report")


@task(outlets=[ORDERS])
def write_orders() -> None: ...


@task(outlets=[CUSTOMERS])
def write_customers() -> None: ...


@task(outlets=[REPORT])
def write_report() -> None: ...


@flow
def produce_orders() -> None:
    write_orders()


@flow
async def produce_customers() -> None:
    write_customers()


@flow(schedule=ORDERS & CUSTOMERS)
def report() -> list[str]:
    write_report()
    return [event.uri for events in triggering_asset_events().values() for event in events]


@flow(schedule=REPORT)
async def mail() -> None: ...


@flow(schedule=ORDERS)
def fails() -> None:
    raise ValueError("on purpose")


@pytest.fixture
def h(prefect_here: PrefectServer) -> Iterator[Harness]:  # noqa: ARG001
    with harness(use_running_server=True) as made:
        yield made


def test_run_the_producers_then_these_deployments_were_run_with_these_events(h: Harness) -> None:
    h.deploy(report)
    h.deploy(mail)

    h.run(produce_orders)
    h.settle()
    assert h.runs(report) == []
    assert [event.uri for event in h.queued(report)] == [ORDERS.uri]

    h.run(produce_customers)
    h.settle()
    (run,) = h.runs(report)
    assert run.uris == [ORDERS.uri, CUSTOMERS.uri]
    assert run.state == "Completed"
    assert h.queued(report) == []

    # The report is an asset too, and starts the mail.
    (mailed,) = h.runs(mail)
    assert mailed.uris == [REPORT.uri]
    assert mailed.events[0].source_flow_run is not None
    assert mailed.events[0].source_flow_run.id == run.id


def test_an_update_without_a_producer(h: Harness) -> None:
    h.deploy(report)
    h.emit(ORDERS, extra={"rows": 3})
    h.emit(CUSTOMERS.uri)
    (run,) = h.settle(execute=False).runs("report/test")
    assert run.events[0].extra == {"rows": 3}
    assert run.state == ""


def test_a_consumer_that_fails_is_a_result(h: Harness) -> None:
    h.deploy(fails)
    h.emit(ORDERS)
    (run,) = h.settle().runs(fails)
    assert run.state == "Failed"


def test_what_is_no_consumer(h: Harness) -> None:
    with pytest.raises(UnknownConsumer, match="produce-orders is no consumer"):
        h.runs(produce_orders)
