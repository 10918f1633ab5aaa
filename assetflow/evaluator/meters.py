"""What only the process that launches can measure; everything else that is measured is in the ledger."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

LAUNCH_SECONDS = Histogram(
    "assetflow_launch_seconds",
    "From a decision to its run, of the runs that this process has created.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
    registry=REGISTRY,
)
