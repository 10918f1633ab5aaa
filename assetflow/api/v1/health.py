"""Health, readiness, metrics, and the size of the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from assetflow.api.own_shapes import HealthOut, LedgerOut, ReadyOut
from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Json, TheBackend, TheReader
from assetflow.core.freshness.asset_freshness import AssetFreshness
from assetflow.core.values.words import iso
from assetflow.evaluator.process.status import InstallationStatus, installation_status
from assetflow.evaluator.runs.launch import METRICS
from assetflow.ledger.lease import Lease, downtime
from assetflow.ledger.records import LedgerCounts, WatcherRecord

router = APIRouter(tags=["health"], route_class=EtagRoute)
# The same two routes, at the paths where load balancers and orchestrators look for them.
plain = APIRouter(include_in_schema=False)


@plain.get("/health")
@router.get("/health", response_model=HealthOut, responses=answers())
def check_health() -> Json:
    """Answer that this process is alive. Needs no key."""
    return Json({"status": "ok"})


@plain.get("/ready")
@router.get(
    "/ready", response_model=ReadyOut, responses=answers() | {503: {"model": ReadyOut, "description": "Not ready"}}
)
def check_readiness(backend: TheBackend) -> Json:
    """Check that updates lead to runs: the ledger can be read, and an evaluator is alive and reaches Prefect."""
    evaluators = backend.ledger.reader.evaluators()
    lease, down = evaluators.lease, downtime(evaluators)
    troubles = [f"{name}: {reason}" for name, reason in backend.current_troubles(evaluators).items()]
    if down is not None:
        troubles.append(str(down))
    document = {
        "status": "not ready" if troubles else "ready",
        "problems": troubles,
        "evaluator": None if lease is None else _evaluator(lease),
    }
    return Json(document, 503 if troubles else 200)


@router.get("/ledger", responses=answers())
def get_ledger(reader: TheReader) -> LedgerOut:
    """Return the size and the state of the ledger."""
    url = reader.prefect_api_url()
    return LedgerOut(**vars(reader.status()), id=reader.id, created=reader.created, prefect_api_url=url)


def _evaluator(lease: Lease) -> dict[str, object]:
    holder = lease.holder
    return {"host": holder.host, "pid": holder.pid, "since": iso(lease.since), "renewed": iso(lease.renewed)}


metrics_router = APIRouter(include_in_schema=False)


@metrics_router.get("/metrics")
def metrics(backend: TheBackend) -> Response:
    """Return updates, decisions, queues and lags in Prometheus's format."""
    reader = backend.ledger.reader
    names = {record.consumer.id: record.consumer.name for record in reader.consumers.all()}
    queues = dict.fromkeys(names.values(), 0)
    queues |= {names[number]: size for number, size in reader.queues.sizes().items() if number in names}
    condition = asyncio.run(installation_status(reader, backend.now(), backend.prefect))
    registry = CollectorRegistry()
    registry.register(_Numbers(reader.status(), condition, queues, reader.watchers.all(), reader.policies.all()))
    return Response(generate_latest(registry) + generate_latest(METRICS), media_type=CONTENT_TYPE_LATEST)


@dataclass(frozen=True, eq=False)
class _Numbers(Collector):
    """The measurements at one moment.

    Attributes:
        queues: the queued events of each consumer.
        watchers: the watchers that deployments declare.
        policies: the assets with a freshness policy.
    """

    status: LedgerCounts
    condition: InstallationStatus
    queues: Mapping[str, int]
    watchers: Sequence[WatcherRecord]
    policies: Sequence[AssetFreshness]

    def collect(self) -> Iterator[Metric]:
        status, condition = self.status, self.condition
        yield CounterMetricFamily("assetflow_events_recorded", "Updates in the ledger.", status.last_event)
        yield CounterMetricFamily("assetflow_events_refused", "Updates that were refused.", status.refused)
        yield CounterMetricFamily("assetflow_decisions", "Decisions that were made.", status.last_decision)
        yield GaugeMetricFamily("assetflow_decisions_undeliverable", "Decisions that get no run.", status.undeliverable)
        yield GaugeMetricFamily(
            "assetflow_decisions_waiting", "Decisions whose run has not been created yet.", status.waiting
        )
        yield GaugeMetricFamily(
            "assetflow_decisions_oldest_waiting_seconds",
            "Age of the oldest of them.",
            self._age(condition.oldest_waiting),
        )
        yield GaugeMetricFamily("assetflow_decisions_running", "Decisions whose run has not ended.", status.running)
        queued = GaugeMetricFamily("assetflow_queued_events", "Updates in a consumer's queue.", labels=["consumer"])
        for consumer, size in self.queues.items():
            queued.add_metric([consumer], size)
        yield queued
        yield GaugeMetricFamily("assetflow_evaluator_up", "1 if an evaluator is running.", condition.evaluators.alive)
        yield from self._watchers()
        yield from self._freshness()
        yield GaugeMetricFamily(
            "assetflow_failing", "Flows, or keys of flows, that failed and were not made good.", condition.failed
        )
        yield GaugeMetricFamily("assetflow_prefect_up", "1 if Prefect answers.", condition.lag is not None)
        if condition.lag is not None:
            yield GaugeMetricFamily(
                "assetflow_prefect_lag_updates", "Updates in Prefect that are not recorded yet.", condition.lag.updates
            )
            oldest = self._age(condition.lag.oldest)
            yield GaugeMetricFamily("assetflow_prefect_lag_seconds", "Age of the oldest of them.", oldest)
            yield GaugeMetricFamily(
                "assetflow_runs_late", "Runs of decisions that wait for a worker.", len(condition.not_started)
            )

    def _watchers(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "assetflow_watchers_up", "1 if a process runs the watchers.", self.condition.watching.alive
        )
        label = ["watcher"]
        failing = GaugeMetricFamily("assetflow_watcher_failing", "1 if the watcher fails.", labels=label)
        waiting = GaugeMetricFamily("assetflow_watcher_waiting", "What waits at the watcher's source.", labels=label)
        updates = CounterMetricFamily("assetflow_watcher_updates", "Updates that the watcher made.", labels=label)
        refused = CounterMetricFamily("assetflow_watcher_refused", "What the watcher refused.", labels=label)
        seen = GaugeMetricFamily(
            "assetflow_watcher_last_update_timestamp_seconds", "When it recorded its last update.", labels=label
        )
        for each in self.watchers:
            if each.last_update is not None:
                seen.add_metric([each.name], each.last_update.timestamp())
            failing.add_metric([each.name], each.state == "failing")
            updates.add_metric([each.name], each.updates)
            refused.add_metric([each.name], each.refused)
            if each.lag is not None:
                waiting.add_metric([each.name], each.lag)
        yield from (failing, waiting, updates, refused, seen)

    def _freshness(self) -> Iterator[Metric]:
        state = GaugeMetricFamily(
            "assetflow_asset_freshness",
            "1 for the state of the asset's freshness policy: pass, warn, fail or unknown.",
            labels=["asset", "state"],
        )
        lag = GaugeMetricFamily("assetflow_asset_lag_seconds", "Age of the asset's data.", labels=["asset"])
        most = GaugeMetricFamily("assetflow_asset_maximum_lag_seconds", "How old it may be.", labels=["asset"])
        for each in self.policies:
            state.add_metric([each.uri, each.record.state], 1)
            most.add_metric([each.uri], each.record.policy.maximum_lag.total_seconds())
            if (age := each.lag(self.condition.now)) is not None:
                lag.add_metric([each.uri], age.total_seconds())
        yield from (state, lag, most)

    def _age(self, since: datetime | None) -> float:
        return 0.0 if since is None else max(0.0, (self.condition.now - since).total_seconds())
