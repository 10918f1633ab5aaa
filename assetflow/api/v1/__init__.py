"""assetflow's own paths, `/api/v1`."""

from fastapi import APIRouter

from assetflow.api.requests import ONLY_KNOWN
from assetflow.api.v1 import assets, consumers, events, health, simulation

router = APIRouter(prefix="/api/v1", dependencies=ONLY_KNOWN)
_PARTS = (
    health,
    recording,
    events,
    assets,
    statuses,
    backfills,
    consumers,
    starting_runs,
    runs,
    decisions,
    tracing,
    simulation,
    watchers,
)
for part in _PARTS:
    router.include_router(part.router)

__all__ = ["router"]
