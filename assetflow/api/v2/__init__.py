"""Airflow's paths and shapes."""

from fastapi import APIRouter

from assetflow.api.v2 import aliases, asset_events, assets, dag_runs, materialize, queued_events, queued_events_by_uri

router = APIRouter(prefix="/api/v2")
# What is fixed in a path comes before what is a value there.
for part in (aliases, asset_events, queued_events, materialize, assets, dag_runs):
    router.include_router(part.router)

airflow2 = queued_events_by_uri.router

__all__ = ["airflow2", "router"]
