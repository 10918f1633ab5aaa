"""The attempt of a task run that publishes."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from prefect.context import TaskRunContext

from assetflow.authoring.recording import current_recording


@dataclass(frozen=True, slots=True)
class AttemptId:
    """One attempt of a task run.

    Parameters:
        task_run: the id of the task run; outside of a task run a new id, so that nothing counts as a retry.
        number: the number of the attempt.
    """

    task_run: str
    number: int


def current_attempt() -> AttemptId:
    """Return the current attempt: of the task that records updates, else of Prefect's task run.

    A plain task inside a task that records updates counts as a part of it: on a retry it would get a new task run, and
    its data would be appended twice.
    """
    recording = current_recording()
    if recording is not None and recording.task_run_id:
        return AttemptId(recording.task_run_id, recording.attempt)
    context = TaskRunContext.get()
    if context is not None:
        return AttemptId(str(context.task_run.id), context.task_run.run_count)
    return AttemptId(str(uuid4()), 1)
