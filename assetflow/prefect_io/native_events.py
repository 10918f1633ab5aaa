"""Write Prefect's own asset events for what assetflow's tasks made, or failed to make. Contract 2.10.

They have the label of our recordings, by which everybody who counts updates leaves them out. They name no task run:
Prefect's triggers cannot ask for a missing label, but they can ask for a task run.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid5

from prefect.types.names import validate_valid_asset_key

from assetflow.core.json_data import fit_object
from assetflow.core.rules.ended_runs import FailedForGood
from assetflow.core.values.events import SCHEMA, AssetEvent, SourceFlowRun
from assetflow.core.values.materialized import Materialized
from assetflow.core.wire.fields import Json, without_empty
from assetflow.prefect_io.names import (
    ASSET_ROLE,
    MAKER_ROLE,
    MATERIALIZATION_FAILED,
    MATERIALIZATION_SUCCEEDED,
    RECORDING_LABEL,
    deployment_resource_id,
)
from assetflow.prefect_io.own_events import ASSETS_NAMED, run_failed

_NAMESPACE = UUID("a3f6c9a4-1d0c-5a0a-8f6e-52f0b7f0c2d1")
_PROPERTIES = ("description", "url")


def is_key(uri: str) -> bool:
    """Return True if Prefect takes a URI as the key of an asset."""
    try:
        validate_valid_asset_key(uri)
    except ValueError:
        return False
    return True


def materialized(told: Materialized) -> list[Json]:
    """Return Prefect's event of an update; none if Prefect does not take its URI as a key."""
    event = told.event
    if not is_key(event.uri):
        return []
    run = event.source_flow_run
    maker = "spark" if event.metrics or run is None else run.flow_name
    inputs = [_related(uri, ASSET_ROLE) for uri in told.inputs if is_key(uri) and uri != event.uri][:ASSETS_NAMED]
    made = {
        "id": str(uuid5(_NAMESPACE, str(event.id))),
        "occurred": event.occurred.isoformat(),
        "event": MATERIALIZATION_SUCCEEDED,
        "resource": {**_resource(event), RECORDING_LABEL: str(event.id)},
        "related": [*inputs, *([_related(maker, MAKER_ROLE)] if maker else []), *_related_to(run)],
        "payload": _payload(event),
    }
    return [fit_object(made)]


def _resource(event: AssetEvent) -> dict[str, str]:
    told = {f"prefect.asset.{each}": event.asset.extra.get(each) for each in _PROPERTIES}
    properties = {label: value for label, value in told.items() if isinstance(value, str)}
    return {"prefect.resource.id": event.uri, "prefect.resource.name": event.asset.name, **properties}


def _payload(event: AssetEvent) -> dict[str, Any]:
    about = without_empty({"partition_key": event.partition_key, "data_version": event.data_version})
    metrics = {name: value for name, value in event.metrics.items() if name != SCHEMA}
    return {**metrics, **({"assetflow": about} if about else {})}


def _related_to(run: SourceFlowRun | None) -> list[dict[str, str]]:
    if run is None:
        return []
    kinds = {"flow-run": (run.id, run.name), "flow": (run.flow_id, run.flow_name)}
    kinds["deployment"] = (run.deployment_id, run.deployment_name)
    return [_related(f"prefect.{kind}.{id_}", kind, name) for kind, (id_, name) in kinds.items() if id_ is not None]


def _related(number: str, role: str, name: str = "") -> dict[str, str]:
    named = {"prefect.resource.name": name} if name else {}
    return {"prefect.resource.id": number, "prefect.resource.role": role, **named}


def failed_with_assets(failed: FailedForGood) -> list[Json]:
    """Return assetflow's event of a failed run, and Prefect's for each asset that the run was to make."""
    run = failed.run
    related = [
        _related(run.flow.partition("/")[0], MAKER_ROLE),
        _related(f"prefect.flow-run.{run.flow_run_id}", "flow-run", run.name),
        _related(deployment_resource_id(run.deployment_id), "deployment"),
    ]
    of_assets = [
        {
            "id": str(uuid5(failed.id, uri)),
            "occurred": failed.at.isoformat(),
            "event": MATERIALIZATION_FAILED,
            "resource": {"prefect.resource.id": uri, RECORDING_LABEL: str(failed.id)},
            "related": related,
            "payload": {"error": run.error or run.state},
        }
        for uri in failed.not_made
        if is_key(uri)
    ]
    return [*run_failed(failed), *map(fit_object, of_assets)]
