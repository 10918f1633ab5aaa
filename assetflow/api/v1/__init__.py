"""assetflow's own paths, `/api/v1`."""

from fastapi import APIRouter

from assetflow.api.requests import ONLY_KNOWN
from assetflow.api.v1 import (
    assets,
    backfills,
    consumers,
    deadlines,
    decisions,
    events,
    freshness,
    graph,
    health,
    observations,
    partitions,
    recording,
    simulation,
    starting_runs,
    statuses,
    watchers,
)

router = APIRouter(prefix="/api/v1", dependencies=ONLY_KNOWN)
_PARTS = (
    health,
    recording,
    observations,
    events,
    assets,
    statuses,
    freshness,
    backfills,
    graph,
    partitions,
    consumers,
    starting_runs,
    decisions,
    deadlines,
    simulation,
    watchers,
)
for part in _PARTS:
    router.include_router(part.router)

__all__ = ["router"]
