"""OpenTelemetry: the task that made an update, the decision that it led to and the run that follows are one trace.

Prefect makes a span of every task and flow run, and takes a run's parent from the run's label. What is here carries the
trace on between them: from the task into its events, from the events into the decision's span, and from there into
the label of the run. Without an SDK of OpenTelemetry in the process, nothing is measured and nothing is sent.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Link
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_TRACEPARENT = "traceparent"
_format = TraceContextTextMapPropagator()


def current_traceparent() -> str:
    """The span that is open here, as W3C writes it; empty without one."""
    carrier: dict[str, str] = {}
    _format.inject(carrier)
    return carrier.get(_TRACEPARENT, "")


@contextmanager
def span(name: str, traceparents: Iterable[str], attributes: Mapping[str, str | int]) -> Generator[None]:
    """A span that follows from others: a child of the last one's trace, linked to those before it.

    Without an SDK there is no span, and within the block the last one is the one that is open.

    Parameters:
        traceparents: what it follows from, oldest first; empty ones do not count.
    """
    before = [context for text in dict.fromkeys(traceparents) if text and (context := _context(text)).is_valid]
    parent = trace.set_span_in_context(trace.NonRecordingSpan(before[-1])) if before else None
    links = [Link(context) for context in before[:-1]]
    tracer = trace.get_tracer("assetflow")
    with tracer.start_as_current_span(name, parent, trace.SpanKind.PRODUCER, dict(attributes), links):
        yield


def _context(traceparent: str) -> trace.SpanContext:
    return trace.get_current_span(_format.extract({_TRACEPARENT: traceparent})).get_span_context()
