"""assetflow's own paths, `/api/v1`."""

from fastapi import APIRouter

from assetflow.api.requests import ONLY_KNOWN
from assetflow.api.v1 import assets, consumers, events, health, simulation

router = APIRouter(prefix="/api/v1", dependencies=ONLY_KNOWN)
_PARTS = (
    health.router,
    events.recording_router,
    events.router,
    assets.router,
    assets.freshness_router,
    assets.backfill_router,
    consumers.router,
    consumers.start_router,
    consumers.decision_router,
    simulation.router,
)
for part in _PARTS:
    router.include_router(part)

__all__ = ["router"]
