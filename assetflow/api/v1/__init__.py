"""assetflow's own paths, `/api/v1`."""

from fastapi import APIRouter

from assetflow.api.v1 import (
    assets,
    consumers,
    deadlines,
    decisions,
    events,
    freshness,
    health,
    observations,
    partitions,
    recording,
    simulation,
    statuses,
)

router = APIRouter(prefix="/api/v1")
_PARTS = (
    health,
    recording,
    observations,
    events,
    assets,
    statuses,
    freshness,
    partitions,
    consumers,
    decisions,
    deadlines,
    simulation,
)
for part in _PARTS:
    router.include_router(part.router)

__all__ = ["router"]
