"""Find flow runs that should have started and have not. Asks Prefect each time, and keeps nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

from assetflow.core.explain import DecisionExplanation, NotStarted, with_run_in_prefect
from assetflow.errors import AssetflowError
from assetflow.prefect_io.rest import Json, PrefectApi, prefect_api

# A worker looks for runs every ten seconds or so, and starts a process in some more.
PATIENCE = timedelta(seconds=30)
# Kept short: a user is waiting for the answer.
SECONDS_TO_ANSWER = 3.0
# Other scheduled states wait for a time, a concurrency slot or a retry.
_FOR_A_WORKER = ("Scheduled", "Late")

OpenPrefect = Callable[[], AbstractAsyncContextManager[PrefectApi]]


async def not_started(api: PrefectApi, runs: Collection[UUID], now: datetime) -> dict[UUID, NotStarted]:
    """Return the runs that have waited for half a minute for a worker, or inside one.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    if not runs:
        return {}
    wanted = {"id": {"any_": [str(run) for run in runs]}, "state": {"type": {"any_": ["SCHEDULED", "PENDING"]}}}
    body = {"flow_runs": wanted, "limit": len(runs)}
    answer = cast("list[Json]", await api.post("/flow_runs/filter", body))
    found = {UUID(str(run["id"])): each for run in answer if (each := _read(run)) is not None}
    return {run: each for run, each in found.items() if now - each.since > PATIENCE}


def with_run_now(
    explanation: DecisionExplanation, now: datetime, prefect: OpenPrefect = prefect_api
) -> DecisionExplanation:
    """Return the explanation with the run's present state in Prefect, if it has not ended and may wait for a worker.

    Call it where no event loop runs. If Prefect does not answer at once, the explanation is returned unchanged.
    """
    run = explanation.facts.run
    if run.flow_run_id is None or run.ended is not None or (run.launched and now - run.launched < PATIENCE):
        return explanation
    found = asyncio.run(_look_at(run.flow_run_id, now, prefect))
    return with_run_in_prefect(explanation, found)


async def _look_at(run: UUID, now: datetime, prefect: OpenPrefect) -> NotStarted | None:
    with suppress(AssetflowError, TimeoutError):
        async with asyncio.timeout(SECONDS_TO_ANSWER), prefect() as api:
            return (await not_started(api, [run], now)).get(run)
    return None


def _read(run: Json) -> NotStarted | None:
    pool, state = str(run.get("work_pool_name") or ""), cast(Json, run["state"])
    if run["state_type"] == "PENDING":
        return NotStarted(datetime.fromisoformat(str(state["timestamp"])), taken=True, pool=pool)
    due = run.get("next_scheduled_start_time") or run.get("expected_start_time")
    if state.get("name") not in _FOR_A_WORKER or due is None:
        return None
    return NotStarted(datetime.fromisoformat(str(due)), pool=pool)
