"""`/metrics`: how it goes, as Prometheus reads it. The numbers are the ledger's, so they outlive every process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from assetflow.api.backend import TheBackend
from assetflow.evaluator.meters import REGISTRY
from assetflow.evaluator.status import Condition, look
from assetflow.ledger.records import Status

router = APIRouter(include_in_schema=False)


@router.get("/metrics")
def metrics(backend: TheBackend) -> Response:
    """Updates, decisions, queues and lags, as Prometheus reads them."""
    reader = backend.ledger.reader
    names = {record.consumer.id: record.consumer.name for record in reader.consumers()}
    queues = dict.fromkeys(names.values(), 0)
    queues |= {names[number]: size for number, size in reader.queue_sizes().items() if number in names}
    condition = asyncio.run(look(reader, backend.now(), backend.prefect))
    registry = CollectorRegistry()
    registry.register(_Numbers(reader.status(), condition, queues))
    return Response(generate_latest(registry) + generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)


@dataclass(frozen=True, eq=False)
class _Numbers(Collector):
    """What is measured at one moment.

    Attributes:
        queues: the queued events of each consumer.
    """

    status: Status
    condition: Condition
    queues: Mapping[str, int]

    def collect(self) -> Iterator[Metric]:
        status, condition = self.status, self.condition
        yield CounterMetricFamily("assetflow_events_recorded", "Updates in the ledger.", status.last_event)
        yield CounterMetricFamily("assetflow_events_refused", "What was sent as an update and is none.", status.refused)
        yield CounterMetricFamily("assetflow_decisions", "Decisions that were made.", status.last_decision)
        yield _gauge("assetflow_decisions_undeliverable", "Decisions that will have no run.", status.undeliverable)
        yield _gauge("assetflow_decisions_waiting", "Decisions whose run is not there yet.", status.waiting)
        yield _gauge("assetflow_decisions_oldest_waiting_seconds", "The age of the oldest of them.", self._oldest())
        yield _gauge("assetflow_decisions_running", "Decisions whose run has not ended.", status.running)
        queued = GaugeMetricFamily("assetflow_queued_events", "Updates that wait in a queue.", labels=["consumer"])
        for consumer, size in self.queues.items():
            queued.add_metric([consumer], size)
        yield queued
        yield _gauge("assetflow_evaluator_up", "Whether an evaluator works on this ledger.", condition.evaluators.alive)
        yield _gauge("assetflow_prefect_up", "Whether Prefect answers.", condition.lag is not None)
        if condition.lag is not None:
            yield _gauge(
                "assetflow_prefect_lag_updates", "Updates in Prefect, not recorded yet.", condition.lag.updates
            )
            oldest = self._age(condition.lag.oldest)
            yield _gauge("assetflow_prefect_lag_seconds", "Since when the oldest of them is there.", oldest)

    def _oldest(self) -> float:
        return self._age(self.condition.oldest_waiting)

    def _age(self, since: datetime | None) -> float:
        return 0.0 if since is None else max(0.0, (self.condition.now - since).total_seconds())


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, value)
