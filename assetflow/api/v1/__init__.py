"""assetflow's own paths, `/api/v1`."""

from fastapi import APIRouter

from assetflow.api.v1 import (
    assets,
    consumers,
    deadlines,
    decisions,
    events,
    health,
    partitions,
    recording,
    simulation,
    statuses,
)

router = APIRouter(prefix="/api/v1")
for part in (health, recording, events, assets, partitions, consumers, decisions, deadlines, statuses, simulation):
    router.include_router(part.router)

__all__ = ["router"]
