"""Mark a task's Spark jobs, so that they can be told from other tasks' jobs in the same session, and be cancelled."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from functools import partial
from types import coroutine
from typing import TYPE_CHECKING, Any

from prefect.context import TaskRunContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def job_tag(task_run_id: str) -> str:
    """The tag on all Spark jobs of a task run: `session.interruptTag(job_tag(id))` cancels them, in both modes."""
    return f"assetflow-task-run-{task_run_id}"


def current_tag() -> str | None:
    """The tag of the task run that is at work here; none outside of Prefect."""
    context = TaskRunContext.get()
    return None if context is None else job_tag(str(context.task_run.id))


@contextmanager
def tagged(session: SparkSession, tag: str | None) -> Generator[None]:
    """Tag the jobs that this thread starts meanwhile."""
    if tag is None:
        yield
        return
    session.addTag(tag)
    try:
        yield
    finally:
        session.removeTag(tag)


@coroutine
def run_tagged(steps: Coroutine[Any, Any, Any], session: SparkSession, tag: str | None) -> Generator[Any, Any, Any]:
    """Await `steps` with the tag set whenever it is really at work.

    Tags belong to a thread, and while a coroutine waits other tasks run in its thread.
    """
    step = partial(steps.send, None)
    while True:
        with tagged(session, tag):
            try:
                awaited = step()
            except (StopIteration, StopAsyncIteration) as end:
                if isinstance(end, StopAsyncIteration):
                    raise
                return end.value
        try:
            value = yield awaited
        except BaseException as error:
            step = partial(steps.throw, error)
        else:
            step = partial(steps.send, value)
