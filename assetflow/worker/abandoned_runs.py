"""What becomes of flow runs whose worker died: one that had not begun starts again, the others end."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Literal

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import State
from prefect.exceptions import ObjectNotFound
from prefect.logging import get_logger
from prefect.states import Cancelled, Crashed, Scheduled

from assetflow.worker.taken_runs import AbandonedRun, TakenRuns, held

logger = get_logger("worker.assetflow")

# A request of the dead worker may still be with Prefect's server, or on its way.
SECONDS_TO_BEGIN = 120.0
_GONE = "The worker of this flow run died, and so did the run's process."
_STATES = {"schedule": Scheduled, "crash": Crashed, "cancel": Cancelled}

Fate = Literal["forget", "wait", "schedule", "crash", "cancel"]

# What becomes of runs without a process. A SCHEDULED one is there for all workers.
_NOT_BEGUN: dict[str, Fate] = {"SCHEDULED": "forget", "PENDING": "schedule", "CANCELLING": "cancel"}


def fate(run: AbandonedRun, state: str, since: float, was_taken: bool, now: float) -> Fate:
    """Return what is to become of an abandoned run.

    Parameters:
        state: the type of its state in Prefect, and `since` when it has that.
        was_taken: the worker that died is the last that has taken the run.
    """
    if not was_taken and state != "SCHEDULED":
        return "forget"
    if run.began and state in ("RUNNING", "CANCELLING"):
        return "crash" if state == "RUNNING" else "cancel"
    if state not in _NOT_BEGUN:
        return "forget"
    if now - max(since, run.noted) < SECONDS_TO_BEGIN:
        return "wait"
    return "crash" if run.is_ordinary and state == "PENDING" else _NOT_BEGUN[state]


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
    was_taken = await _was_taken(run, state, client)
    decided = fate(run, state.type.value, state.timestamp.timestamp(), was_taken, time.time())
    if decided == "wait":
        return
    if decided in _STATES:
        logger.info("flow run %s of a dead worker: %s", run.id, decided)
        await client.set_flow_run_state(run.id, _STATES[decided](message=_GONE), force=True)
    run.forget()


async def _was_taken(run: AbandonedRun, state: State[Any], client: PrefectClient) -> bool:
    """Return True if the dead worker has signed the last of the run's PENDING states."""
    states = [state] if state.is_pending() else await client.read_flow_run_states(run.id)
    taken = [each for each in states if each.is_pending()]
    return bool(taken) and run.is_signed(max(taken, key=lambda each: each.timestamp).message)
