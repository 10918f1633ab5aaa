"""The flow runs that decisions have led to, read back: what a ledger that is rebuilt must not decide again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import cast
from uuid import UUID

from assetflow.core.adoption import Decided
from assetflow.core.codec import run_context_from_json
from assetflow.errors import InvalidEvent
from assetflow.prefect_io.names import DECISION_LABEL
from assetflow.prefect_io.rest import Json, PrefectApi

PAGE = 200


async def past_decisions(api: PrefectApi) -> list[Decided]:
    """The decisions whose runs Prefect has, with the updates that they consumed.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    found: dict[UUID, Decided] = {}
    offset = 0
    while True:
        body = {"flow_runs": {"tags": {"all_": ["assetflow"]}}, "sort": "ID_DESC", "limit": PAGE, "offset": offset}
        page = cast("list[Json]", await api.post("/flow_runs/filter", body))
        for run in page:
            decided = await _decided(api, run)
            if decided is not None and decided.events:
                found[decided.id] = decided
        if len(page) < PAGE:
            return list(found.values())
        offset += PAGE


async def _decided(api: PrefectApi, run: Json) -> Decided | None:
    if DECISION_LABEL not in (run.get("labels") or {}) or run.get("deployment_id") is None:
        return None
    try:
        context = run_context_from_json(run.get("context"))
    except InvalidEvent:
        return None
    if context is None or context.decision is None:
        return None
    if context.events is not None:
        events: Iterable[UUID] = (event.id for event in context.events)
    else:
        events = await _ids_in_artifact(api, context.artifact)
    deployment, made = UUID(str(run["deployment_id"])), datetime.fromisoformat(str(run["created"]))
    return Decided(context.decision, deployment, context.partition_key, frozenset(events), made)


async def _ids_in_artifact(api: PrefectApi, artifact: UUID | None) -> list[UUID]:
    found = cast("Json | None", await api.get(f"/artifacts/{artifact}"))
    data: object = None if found is None else found.get("data")
    events = json.loads(data) if isinstance(data, str) else data
    return [UUID(str(event["id"])) for event in cast("list[Json]", events or [])]
