"""Read the present states of flow runs, as Prefect names them: Pending, Late, Running, …"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast
from uuid import UUID

from assetflow.prefect_io.rest import Json, PrefectApi

# Prefect's largest page.
MOST = 200


async def run_states(api: PrefectApi, runs: Collection[UUID]) -> dict[UUID, str]:
    """Return the names of the states of these flow runs, without those that Prefect does not know. Asks once.

    Parameters:
        runs: at most `MOST`.

    Raises:
        PrefectUnreachable, PrefectRefused
    """
    if not runs:
        return {}
    body = {"flow_runs": {"id": {"any_": [str(run) for run in runs]}}, "limit": len(runs)}
    answer = cast("list[Json]", await api.post("/flow_runs/filter", body))
    return {UUID(str(run["id"])): str(run.get("state_name") or "") for run in answer}
