"""The harness, as its documentation tells of it."""

import asyncio

import pytest

from assetflow import Asset, flow, task, triggering_asset_events
from assetflow.errors import PrefectUnreachable, TimedOut
from assetflow.evaluator.consumers.registry import Registry
from assetflow.testing import Harness

pytestmark = pytest.mark.prefect

ORDERS = Asset("s3://harness/orders")
CUSTOMERS = Asset("s3://harness/customers")
REPORT = Asset("s3://harness/report")
PING, PONG = Asset("s3://harness/ping"), Asset("s3://harness/pong")


def updates(asset: Asset) -> None:
    """Run a task that updates an asset."""

    @task(outlets=[asset])
    def write() -> None: ...

    write()


@flow
def produce_orders() -> None:
    updates(ORDERS)


@flow
async def produce_customers() -> None:
    updates(CUSTOMERS)


@flow(schedule=ORDERS & CUSTOMERS)
def report() -> list[str]:
    updates(REPORT)
    return [event.uri for events in triggering_asset_events().values() for event in events]


@flow(schedule=REPORT)
async def mail() -> None: ...


@flow(schedule=PING)
async def ping() -> None:
    updates(PONG)


@flow(schedule=PONG)
async def pong() -> None:
    updates(PING)


@flow(schedule=ORDERS)
async def never_ends() -> None:
    await asyncio.Event().wait()


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


def test_flows_that_start_each_other_are_named(h: Harness) -> None:
    h.deploy(ping)
    h.deploy(pong)
    h.emit(PING)
    with pytest.raises(
        TimedOut, match=r"^Flows keep starting each other: (ping → pong → ping|pong → ping → pong)\."
    ) as found:
        h.settle(timeout=10)
    assert "This went on for 10 s" in str(found.value)


def test_a_run_that_does_not_end_is_stopped(h: Harness) -> None:
    h.deploy(never_ends)
    h.emit(ORDERS)
    h.settle(execute=False)
    with pytest.raises(TimedOut, match=r"not settled within 3 s: waited for the run \S+ of never-ends to end") as found:
        h.settle(timeout=3)
    assert "settle(timeout=6)" in str(found.value)
    (run,) = h.settle().runs(never_ends)
    assert run.state == "TimedOut"


def test_prefect_that_never_answers_is_the_error(h: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(registry: Registry) -> None:  # noqa: ARG001
        raise PrefectUnreachable("away")

    with monkeypatch.context() as patched:
        patched.setattr(Registry, "sync", away)
        patched.setattr(h._evaluator, "timeout", 2)
        with pytest.raises(TimedOut, match=r"for the deployment \S+ to be known; in trouble: .*away"):
            h.deploy(report)
