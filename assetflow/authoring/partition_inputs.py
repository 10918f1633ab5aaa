"""Which partitions of an asset a run is about: those that it was triggered for, or that its key stands for (5.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from assetflow.authoring.triggering import partition_key, triggering_asset_events
from assetflow.core.assets import Asset
from assetflow.core.conditions import Token
from assetflow.core.partitions import PartitionMapper
from assetflow.core.schedules import Schedule
from assetflow.errors import MappingError
from assetflow.prefect_io.internals import flow_run_contexts


def keys_of_run(asset: Asset, known: Callable[[], Iterable[str]]) -> list[str] | None:
    """The keys of an asset that the flow run around this code is about; none if it is not about some of them.

    A run with a key that updates started is about the keys of these updates. One that a person or a backfill started
    for a key is about all known keys that the flow's schedule maps to it. A run without a key, or an asset that the
    flow is not scheduled on, is about no keys.

    Parameters:
        known: tells the keys for which the asset has data; asked when it matters.
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
    """The mapper of an asset in the schedule of the flow run around this code."""
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
