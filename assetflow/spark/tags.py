"""Mark a task's Spark jobs, so that they can be told from other tasks' jobs in the same session, and be stopped."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from functools import partial
from types import coroutine
from typing import TYPE_CHECKING, Any

from prefect.context import TaskRunContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def job_tag(task_run_id: str) -> str:
    """The tag on all Spark jobs of a task run, by which `stop_jobs` finds them."""
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
    # In classic mode a session's own tags can be interrupted in the thread that set them only; the context's by all.
    add, remove = (session.addTag, session.removeTag) if _is_remote() else _context_tags(session)
    add(tag)
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception):
            _leave_call(session)
        raise
    finally:
        remove(tag)


def stop_jobs(session: SparkSession, tag: str) -> None:
    """Cancel the jobs that run under a tag now, whoever started them."""
    if _is_remote():
        session.interruptTag(tag)
    else:
        session.sparkContext.cancelJobsWithTag(tag)


def _is_remote() -> bool:
    from pyspark.sql.utils import is_remote

    return is_remote()


def _context_tags(session: SparkSession) -> tuple[Callable[[str], None], Callable[[str], None]]:
    context = session.sparkContext
    return context.addJobTag, context.removeJobTag


def _leave_call(session: SparkSession) -> None:
    """Give up this thread's line to the JVM: a time limit or a signal may have ended a call that waits for its answer.

    The answer comes later, and the next call would take it for its own. A new call gets a new line.
    """
    if _is_remote():
        return
    gateway: Any = session.sparkContext._gateway  # pyright: ignore
    connection = gateway._gateway_client.get_thread_connection()
    if connection is not None:
        connection.close()


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
