"""Who publishes: a task run and which of its attempts."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from prefect.context import TaskRunContext

from assetflow.authoring.recording import current_recording


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a task run.

    Parameters:
        task_run: the id of the task run; outside of any a fresh id, so that nothing is taken for a retry.
        number: counts the attempts of the task run.
    """

    task_run: str
    number: int


def current_attempt() -> Attempt:
    """The attempt that is at work here: of the task that records updates, else of Prefect's task run.

    A plain task that runs inside a recording one counts as a part of it: its own task run would be a new one on a
    retry, and its data would come twice.
    """
    recording = current_recording()
    if recording is not None and recording.task_run_id:
        return Attempt(recording.task_run_id, recording.attempt)
    context = TaskRunContext.get()
    if context is not None:
        return Attempt(str(context.task_run.id), context.task_run.run_count)
    return Attempt(str(uuid4()), 1)
