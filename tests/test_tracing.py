"""A trace goes on from the task to its events, to the decision, to the label of the run."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prefect.telemetry.run_telemetry import LABELS_TRACEPARENT_KEY

from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin
from assetflow.core.wire import RunContext
from assetflow.core.wire.events import event_from_json, event_to_json
from assetflow.core.wire.run_context import run_context_from_json
from assetflow.prefect_io.flow_runs import run_request
from assetflow.prefect_io.names import TRACEPARENT_LABEL
from assetflow.tracing import current_traceparent, span

FIRST = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECOND = "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


def test_without_an_sdk_the_trace_is_handed_on() -> None:
    assert current_traceparent() == ""
    with span("assetflow.decision", [FIRST, "", SECOND], {}):
        assert current_traceparent() == SECOND
    with span("assetflow.decision", [""], {}):
        assert current_traceparent() == ""


def test_a_span_belongs_to_the_trace_of_the_last_and_names_the_others(spans: InMemorySpanExporter) -> None:
    with span("assetflow.decision", [FIRST, FIRST, SECOND], {"assetflow.consumer": "report/daily"}):
        inside = current_traceparent()
    (found,) = spans.get_finished_spans()
    assert found.context is not None
    assert found.parent is not None
    assert inside == f"00-{found.context.trace_id:032x}-{found.context.span_id:016x}-01"
    assert f"{found.context.trace_id:032x}" in SECOND
    assert f"{found.parent.span_id:016x}" in SECOND
    assert [f"{link.context.span_id:016x}" in FIRST for link in found.links] == [True]
    assert dict(found.attributes or {}) == {"assetflow.consumer": "report/daily"}


@pytest.mark.parametrize("damaged", ["x", "00-0-0-01", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
def test_what_is_no_traceparent_counts_for_nothing(damaged: str, spans: InMemorySpanExporter) -> None:
    with span("assetflow.decision", [damaged], {}):
        pass
    (found,) = spans.get_finished_spans()
    assert found.parent is None
    assert not found.links


def test_the_trace_goes_with_the_event_and_with_the_run() -> None:
    event = AssetEvent(uuid4(), Asset("s3://lake/orders"), datetime.now(UTC), Origin("task", traceparent=FIRST))
    assert event_from_json(event_to_json(event)).origin.traceparent == FIRST
    decision = Decision(uuid4(), 1, uuid4(), None, (event,), event.occurred)
    context = RunContext(decision.id, "report/daily", None, (event,), traceparent=SECOND)
    request = run_request(decision, context)
    assert request["labels"][LABELS_TRACEPARENT_KEY] == SECOND
    assert run_context_from_json(request["context"]) == context


def test_prefect_takes_a_runs_parent_from_this_label() -> None:
    assert TRACEPARENT_LABEL == LABELS_TRACEPARENT_KEY
