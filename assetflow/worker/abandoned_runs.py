"""What becomes of flow runs whose worker died: one that had not begun starts again, the others end."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Literal

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.exceptions import ObjectNotFound
from prefect.logging import get_logger
from prefect.states import Cancelled, Crashed, Scheduled

from assetflow.worker.taken_runs import AbandonedRun, TakenRuns, held

logger = get_logger("worker.assetflow")

# A worker asks Prefect for a minute, if need be, before it gives up a run that it was about to take.
SECONDS_TO_BEGIN = 120.0
_GONE = "The worker of this flow run died, and so did the run's process."
_STATES = {"schedule": Scheduled, "crash": Crashed, "cancel": Cancelled}

Fate = Literal["forget", "wait", "schedule", "crash", "cancel"]


def fate(run: AbandonedRun, state: str, since: float, owner: object, now: float) -> Fate:
    """Return what is to become of an abandoned run.

    Parameters:
        state: the type of its state in Prefect, and `since` when it has that.
        owner: the name of the worker that has taken it, if one has said so.
    """
    if owner not in (None, run.worker):
        return "forget"
    if state in ("SCHEDULED", "PENDING"):
        if now - max(since, run.noted) < SECONDS_TO_BEGIN:
            return "wait"
        return "schedule" if state == "PENDING" else "forget"
    ends: dict[str, Fate] = {"RUNNING": "crash", "CANCELLING": "cancel"}
    return ends.get(state, "forget") if run.began else "forget"


async def see_to_abandoned_runs(taken: TakenRuns, client: PrefectClient) -> None:
    """Start or end the runs of dead workers that nobody executes."""
    for note in taken.abandoned():
        with suppress(FileNotFoundError), held(note) as run:
            if run is not None:
                try:
                    await _see_to(run, client)
                except httpx.HTTPError as error:
                    logger.debug("the flow run %s of a dead worker waits: %s", run.id, error)


async def _see_to(run: AbandonedRun, client: PrefectClient) -> None:
    try:
        found = await client.read_flow_run(run.id)
    except ObjectNotFound:
        run.forget()
        return
    state = found.state
    if state is None:
        return
    owner = found.labels.get("prefect.worker.name")
    decided = fate(run, state.type.value, state.timestamp.timestamp(), owner, time.time())
    if decided == "wait":
        return
    if decided in _STATES:
        logger.info("flow run %s of a dead worker: %s", run.id, decided)
        await client.set_flow_run_state(run.id, _STATES[decided](message=_GONE), force=True)
    run.forget()
