"""Asset events in Airflow's shape."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assetflow.api.v2.airflow_terms import run_to_json
from assetflow.core.values.addresses import redacted_mapping
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import iso
from assetflow.ledger.read.events import ConsumedBy
from assetflow.ledger.read.reader import Reader

_TASK_RUN = re.compile(r"-[0-9a-f]{3}$")


def events_to_json(reader: Reader, found: Sequence[tuple[AssetEvent, int]]) -> list[dict[str, object]]:
    """Return events, each given with its asset's number, in Airflow's shape."""
    runs = reader.receipts.consumed_by([event.sequence for event, _ in found if event.sequence is not None])
    return [_to_json(event, number, runs.get(event.sequence or 0, [])) for event, number in found]


def _to_json(event: AssetEvent, number: int, runs: Sequence[ConsumedBy]) -> dict[str, object]:
    extra = redacted_mapping(event.extra)
    if event.origin.kind == "api":
        # Airflow stores this in the extra; assetflow adds it in these answers only. Contract 2.2.
        extra["from_rest_api"] = True
    task, flow = event.origin.task_run, event.origin.flow_run
    source = "" if flow is None else ".".join(name for name in (flow.flow_name, flow.deployment_name) if name)
    return {
        "id": event.sequence,
        "asset_id": number,
        "uri": event.uri,
        "name": event.asset.name,
        "group": event.asset.group,
        "extra": extra,
        "source_task_id": None if task is None else _TASK_RUN.sub("", task.name),
        "source_dag_id": source or None,
        "source_run_id": None if flow is None else str(flow.id),
        "source_map_index": -1,
        "created_dagruns": [run_to_json(each, event.sequence or 0) for each in runs],
        "timestamp": iso(event.occurred),
        "partition_key": event.partition_key,
    }
