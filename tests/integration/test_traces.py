"""One trace from a task to the run that follows, over a real Prefect server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prefect.client.orchestration import get_client
from prefect.flow_engine import run_flow_sync

from assetflow import Asset, TriggeringAssetEvents, flow, task
from assetflow.ledger import Reader
from assetflow.testing.background import BackgroundEvaluator
from tests.environment.prefect_server import PrefectServer
from tests.environment.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.prefect]

MARK = uuid4().hex[:8]
ORDERS, CUSTOMERS = Asset(f"s3://traced/orders-{MARK}"), Asset(f"s3://traced/customers-{MARK}")


@task(outlets=[ORDERS])
def produce_orders() -> None: ...


@task(outlets=[CUSTOMERS])
def produce_customers() -> None: ...


@flow(name=f"traced-producer-{MARK}")
def producer() -> None:
    produce_orders()
    produce_customers()


@flow(name=f"traced-consumer-{MARK}", schedule=ORDERS & CUSTOMERS)
def consumer(triggering_asset_events: TriggeringAssetEvents) -> int:
    return len(triggering_asset_events.all())


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


def test_from_a_task_to_the_run_that_follows(
    prefect_here: PrefectServer, tmp_path: Path, spans: InMemorySpanExporter
) -> None:
    with get_client(sync_client=True) as client:
        deployment = cast(UUID, cast(Any, consumer.to_deployment("traced")).apply())
        with BackgroundEvaluator(tmp_path / "ledger.db") as evaluator, Reader.open(tmp_path / "ledger.db") as reader:
            evaluator.call(lambda each: each.registry.sync(), 30)
            producer()
            evaluator.call(lambda each: each.settled(), 30)
            run = until(lambda: run_of(reader), seconds=30)
        assert run_flow_sync(consumer, flow_run=client.read_flow_run(run), return_type="result") == 2
    with prefect_here.http() as http:
        http.delete(f"/flow_runs/{run}").raise_for_status()
        http.delete(f"/deployments/{deployment}").raise_for_status()
    found = {span.name.rpartition("-")[0] or span.name: span for span in spans.get_finished_spans()}
    decision, followed = found["assetflow.decision"], span_of(spans, str(run))
    orders, customers = found["produce_orders"], found["produce_customers"]
    assert parent_of(decision) == id_of(customers)
    assert [link.context.span_id for link in decision.links] == [id_of(orders)]
    assert parent_of(followed) == id_of(decision)
    assert len({each.context.trace_id for each in (orders, customers, decision, followed) if each.context}) == 1


def run_of(reader: Reader) -> UUID | None:
    return next((decision.flow_run_id for decision in reader.decisions.find()), None)


def span_of(spans: InMemorySpanExporter, run: str) -> ReadableSpan:
    return next(each for each in spans.get_finished_spans() if (each.attributes or {}).get("prefect.run.id") == run)


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def parent_of(span: ReadableSpan) -> int:
    assert span.parent is not None
    return span.parent.span_id
