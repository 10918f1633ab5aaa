"""Read what Prefect's own asset events say beside the update: who made an asset, from what, and how it is described.

Contract 2.9.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from assetflow.core.graph.lineage import Learned
from assetflow.core.json_data import fit_json, fit_text
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Origin
from assetflow.core.wire import fields
from assetflow.core.wire.fields import Json
from assetflow.prefect_io.names import (
    ASSET_REFERENCED,
    ASSET_ROLE,
    MAKER_ROLE,
    MATERIALIZATION_FAILED,
    MATERIALIZATION_SUCCEEDED,
    RECORDING_LABEL,
)

TEACHING = (MATERIALIZATION_SUCCEEDED, MATERIALIZATION_FAILED, ASSET_REFERENCED)
_PROPERTIES = ("description", "url", "owners")


def is_copy(event: Json) -> bool:
    """Return True if an assetflow posted an event of Prefect's for an update, which counts already. Contract 2.10."""
    return event.get("event") in TEACHING and RECORDING_LABEL in fields.mapping_or_empty(event.get("resource"))


def learned_from(event: Json, origin: Origin) -> Learned | None:
    """Return what an event says that its deployment makes and reads; `None` if no deployment's run sent it.

    Raises:
        InvalidAsset, InvalidEvent: an asset of the event breaks contract 1.
    """
    run, where = origin.flow_run, f"Prefect event {event.get('id')}"
    if event.get("event") not in TEACHING:
        return None
    asset, read = asset_of(event, where), tuple(assets_read(event, where))
    if run is None or run.deployment_id is None or not (run.flow_name and run.deployment_name):
        return None
    is_input = event["event"] == ASSET_REFERENCED
    name = f"{run.flow_name}/{run.deployment_name}"
    return Learned(run.deployment_id, name, () if is_input else (asset,), (asset,) if is_input else read)


def asset_of(event: Json, where: str) -> Asset:
    """Return the asset of an event, with its name and what its properties say of it.

    Raises:
        InvalidAsset, InvalidEvent: its key is missing, is not a text, or breaks contract 1.
    """
    resource = fields.mapping(event.get("resource"), "resource", where)
    uri = fields.text(resource.get("prefect.resource.id"), "uri", where)
    name = resource.get("prefect.resource.name")
    named = name if isinstance(name, str) and name.strip() and name != uri else None
    found = {each: _property(resource.get(f"prefect.asset.{each}"), each) for each in _PROPERTIES}
    return Asset(uri=uri, name=named, extra={each: value for each, value in found.items() if value is not None})


def _property(value: object, name: str) -> object:
    """Return a property; the owners are a list that is written as JSON. What cannot be read is left out."""
    if not isinstance(value, str):
        return None
    try:
        return fit_json(json.loads(value)) if name == "owners" else fit_text(value)
    except (ValueError, RecursionError):
        return None


def assets_read(event: Json, where: str) -> Iterator[Asset]:
    """Yield the assets that an event names as read.

    Raises:
        InvalidAsset, InvalidEvent: as `asset_of`.
    """
    for each in _related(event, ASSET_ROLE):
        yield Asset(uri=fields.text(each.get("prefect.resource.id"), "related asset", where))


def maker_of(event: Json) -> str:
    """Return the tool that made the asset of an event; "" if the event names none."""
    return next((fit_text(str(each.get("prefect.resource.id"))) for each in _related(event, MAKER_ROLE)), "")


def _related(event: Json, role: str) -> Iterator[Json]:
    return (each for each in related_in(event) if each.get("prefect.resource.role") == role)


def related_in(event: Json) -> Iterator[Json]:
    """Return the related resources of an event; empty for one that is not an object."""
    related = event.get("related")
    return map(fields.mapping_or_empty, cast("list[object]", related if isinstance(related, list) else []))
