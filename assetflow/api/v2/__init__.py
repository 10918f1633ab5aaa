"""Airflow's paths and shapes, `/api/v2`."""

from fastapi import APIRouter

from assetflow.api.v2 import assets, queued_events

router = APIRouter(prefix="/api/v2")
# Routes with fixed paths come before routes that have a parameter in the same place.
for part in (assets.router, queued_events.router, assets.run_router):
    router.include_router(part)

airflow2 = queued_events.airflow2

__all__ = ["airflow2", "router"]
