"""Read past decisions back from their flow runs, so that a new ledger does not decide them again."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import cast
from uuid import UUID

from assetflow.core.codec import RunContext, events_from_text, run_context_from_json
from assetflow.core.rules.adoption import Decided
from assetflow.errors import InvalidEvent
from assetflow.prefect_io.names import DECISION_LABEL, PREDECESSOR_LABEL
from assetflow.prefect_io.rest import Json, PrefectApi, patiently

PAGE = 200
_logger = logging.getLogger("assetflow.evaluator")


async def past_decisions(api: PrefectApi, since: datetime) -> AsyncIterator[Decided]:
    """Yield the decisions whose runs were created since a moment, with the updates that they consumed, newest first.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    seen: set[UUID] = set()
    place = 0
    while True:
        # Prefect filters by the expected start time, which for runs of decisions is the time of their creation.
        # Newest first: new runs move later pages down, so that some are seen twice, and none is missed.
        body = {
            "flow_runs": {"tags": {"all_": ["assetflow"]}, "expected_start_time": {"after_": since.isoformat()}},
            "sort": "EXPECTED_START_TIME_DESC",
            "limit": PAGE,
            "offset": place,
        }
        ask = partial(api.post, "/flow_runs/filter", body)
        page = cast("list[Json]", await (patiently(ask) if place else ask()))
        for run in page:
            decided = await _decided(api, run)
            if decided is not None and (decided.events or decided.asked) and decided.id not in seen:
                seen.add(decided.id)
                yield decided
        if len(page) < PAGE:
            return
        place += PAGE


async def _decided(api: PrefectApi, run: Json) -> Decided | None:
    if DECISION_LABEL not in (run.get("labels") or {}) or run.get("deployment_id") is None:
        return None
    try:
        context = run_context_from_json(run.get("context"))
        if context is None or context.decision is None:
            return None
        events = await _consumed(api, context)
    except InvalidEvent as error:
        _logger.warning("the decision of flow run %s is left out, since it cannot be read: %s", run.get("id"), error)
        return None
    deployment, made = UUID(str(run["deployment_id"])), datetime.fromisoformat(str(run["created"]))
    start = run.get("start_time")
    began = None if start is None else datetime.fromisoformat(str(start))
    asked = None if context.asked is None else replace(context.asked, predecessor=_predecessor(run))
    return Decided(context.decision, deployment, context.partition_key, frozenset(events), made, asked, began)


def _predecessor(run: Json) -> UUID | None:
    """Return the decision that a run's label names as the one before its own. Contract 8.17."""
    try:
        return UUID(str(cast(Json, run["labels"])[PREDECESSOR_LABEL]))
    except (KeyError, ValueError):
        return None


async def _consumed(api: PrefectApi, context: RunContext) -> list[UUID]:
    events = context.events
    if events is None and context.artifact is not None:
        found = cast("Json | None", await api.get(f"/artifacts/{context.artifact}"))
        data: object = None if found is None else found.get("data")
        events = None if data is None else events_from_text(data, where=f"artifact {context.artifact}")
    return [event.id for event in events or ()]
