"""Find the partitions of an asset that belong to a run: those that started it, or that map to its key. Contract 5.2."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from assetflow.authoring.triggering import partition_key, triggering_asset_events
from assetflow.core.condition_tree import Token
from assetflow.core.partitions import PartitionMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.schedules import Schedule
from assetflow.errors import MappingError
from assetflow.prefect_io.internals import flow_run_contexts


def keys_of_run(asset: Asset, known: Callable[[], Iterable[str]]) -> list[str] | None:
    """Return the keys of an asset that belong to the current flow run, or `None` if the run is not limited to keys.

    If updates started the run, these are the keys of the updates. If a person or a backfill started it for a key, these
    are all known keys that the flow's schedule maps to that key. A run without a key is not limited, nor is a run for
    an asset that the flow is not scheduled on.

    Parameters:
        known: returns the keys for which the asset has data; called only if they are needed.
    """
    target = partition_key()
    if target is None:
        return None
    events = triggering_asset_events()[asset]
    triggered = dict.fromkeys(event.partition_key for event in events if event.partition_key is not None)
    if triggered:
        return list(triggered)
    mapper = _mapper_of(asset)
    return None if mapper is None else [key for key in known() if _leads_to(mapper, key, target)]


def _mapper_of(asset: Asset) -> PartitionMapper | None:
    """Return the mapper of an asset in the schedule of the current flow run, or `None`."""
    tokens = frozenset((asset.token, Token("name", asset.name)))
    for context in flow_run_contexts():
        schedule = cast("Schedule | None", getattr(context.flow, "schedule", None))
        if isinstance(schedule, Schedule) and schedule.partitioning is not None:
            return schedule.partitioning.mapper_for(tokens) if tokens & schedule.tokens else None
    return None


def _leads_to(mapper: PartitionMapper, key: str, target: str) -> bool:
    try:
        return target in mapper.to_downstream(key)
    except MappingError:
        return False
