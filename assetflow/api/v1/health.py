"""Health, readiness, metrics, and the size of the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily as Counted
from prometheus_client.core import GaugeMetricFamily as Measured
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from assetflow.api.own_shapes import HealthOut, LedgerOut, ReadyOut
from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Json, TheBackend, TheReader
from assetflow.core.freshness.asset_freshness import AssetFreshness
from assetflow.core.values.words import iso
from assetflow.evaluator.process.status import InstallationStatus, installation_status
from assetflow.evaluator.runs.launch import METRICS
from assetflow.ledger.lease import downtime
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
        "evaluator": lease
        and {
            "host": lease.holder.host,
            "pid": lease.holder.pid,
            "since": iso(lease.since),
            "renewed": iso(lease.renewed),
        },
    }
    return Json(document, 503 if troubles else 200)


@router.get("/ledger", responses=answers())
def get_ledger(reader: TheReader) -> LedgerOut:
    """Return the size and the state of the ledger."""
    url = reader.prefect_api_url()
    return LedgerOut(**vars(reader.status()), id=reader.id, created=reader.created, prefect_api_url=url)


metrics_router = APIRouter(include_in_schema=False)


@metrics_router.get("/metrics")
def metrics(backend: TheBackend, reader: TheReader) -> Response:
    """Return updates, decisions, queues and lags in Prometheus's format."""
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
        status, condition, lag = self.status, self.condition, self.condition.lag
        queued = (([consumer], size) for consumer, size in self.queues.items())
        yield from (
            Counted("assetflow_events_recorded", "Updates in the ledger.", status.last_event),
            Counted("assetflow_events_refused", "Updates that were refused.", status.refused),
            Counted("assetflow_decisions", "Decisions that were made.", status.last_decision),
            Measured("assetflow_decisions_undeliverable", "Decisions that get no run.", status.undeliverable),
            Measured("assetflow_decisions_waiting", "Decisions whose run has not been created yet.", status.waiting),
            Measured(
                "assetflow_decisions_oldest_waiting_seconds",
                "Age of the oldest of them.",
                self._age(condition.oldest_waiting),
            ),
            Measured("assetflow_decisions_running", "Decisions whose run has not ended.", status.running),
            _of_each(Measured, "assetflow_queued_events", "Updates in a consumer's queue.", ["consumer"], queued),
            Measured("assetflow_evaluator_up", "1 if an evaluator is running.", condition.evaluators.alive),
            *self._watchers(),
            *self._freshness(),
            Measured(
                "assetflow_failing", "Flows, or keys of flows, that failed and were not made good.", condition.failed
            ),
            Measured("assetflow_prefect_up", "1 if Prefect answers.", lag is not None),
        )
        if lag is not None:
            late = len(condition.not_started)
            yield from (
                Measured("assetflow_prefect_lag_updates", "Updates in Prefect that are not recorded yet.", lag.updates),
                Measured("assetflow_prefect_lag_seconds", "Age of the oldest of them.", self._age(lag.oldest)),
                Measured("assetflow_runs_late", "Runs of decisions that wait for a worker.", late),
            )

    def _watchers(self) -> Iterator[Metric]:
        def of_each(
            kind: type[Counted | Measured], name: str, about: str, value: Callable[[WatcherRecord], float | None]
        ) -> Metric:
            found = (([each.name], value(each)) for each in self.watchers)
            return _of_each(kind, name, about, ["watcher"], found)

        yield from (
            Measured("assetflow_watchers_up", "1 if a process runs the watchers.", self.condition.watching.alive),
            of_each(
                Measured, "assetflow_watcher_failing", "1 if the watcher fails.", lambda each: each.state == "failing"
            ),
            of_each(Measured, "assetflow_watcher_waiting", "What waits at the watcher's source.", attrgetter("lag")),
            of_each(Counted, "assetflow_watcher_updates", "Updates that the watcher made.", attrgetter("updates")),
            of_each(Counted, "assetflow_watcher_refused", "What the watcher refused.", attrgetter("refused")),
            of_each(
                Measured,
                "assetflow_watcher_last_update_timestamp_seconds",
                "When it recorded its last update.",
                lambda each: each.last_update and each.last_update.timestamp(),
            ),
        )

    def _freshness(self) -> Iterator[Metric]:
        lags = ((each.uri, each.lag(self.condition.now)) for each in self.policies)
        yield from (
            _of_each(
                Measured,
                "assetflow_asset_freshness",
                "1 for the state of the asset's freshness policy: pass, warn, fail or unknown.",
                ["asset", "state"],
                (([each.uri, each.record.state], 1) for each in self.policies),
            ),
            _of_each(
                Measured,
                "assetflow_asset_lag_seconds",
                "Age of the asset's data.",
                ["asset"],
                (([uri], None if lag is None else lag.total_seconds()) for uri, lag in lags),
            ),
            _of_each(
                Measured,
                "assetflow_asset_maximum_lag_seconds",
                "How old it may be.",
                ["asset"],
                (([each.uri], each.record.policy.maximum_lag.total_seconds()) for each in self.policies),
            ),
        )

    def _age(self, since: datetime | None) -> float:
        return 0.0 if since is None else max(0.0, (self.condition.now - since).total_seconds())


def _of_each(
    kind: type[Counted | Measured],
    name: str,
    about: str,
    labels: Sequence[str],
    found: Iterable[tuple[Sequence[str], float | None]],
) -> Metric:
    """Return a metric with a value for each of several things, without those whose value is not known."""
    made = kind(name, about, labels=labels)
    for values, value in found:
        if value is not None:
            made.add_metric(values, value)
    return made
