"""Tag a task's Spark jobs, to distinguish them from other tasks' jobs in the same session, and to stop them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from functools import partial
from types import coroutine
from typing import TYPE_CHECKING, Any

from prefect.context import TaskRunContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def job_tag(task_run_id: str) -> str:
    """Return the tag for all Spark jobs of a task run, by which `stop_jobs` finds them."""
    return f"assetflow-task-run-{task_run_id}"


def current_tag() -> str | None:
    """Return the tag of the current task run, or `None` outside of one."""
    context = TaskRunContext.get()
    return None if context is None else job_tag(str(context.task_run.id))


@contextmanager
def tagged(session: SparkSession, tag: str | None) -> Generator[None]:
    """Tag the jobs that this thread starts in the block."""
    if tag is None:
        yield
        return
    # In classic mode only the thread that set a session's tag can interrupt it; any thread can interrupt a context's.
    add, remove = (session.addTag, session.removeTag) if is_remote() else _context_tags(session)
    add(tag)
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception):
            leave_call(session)
        raise
    finally:
        # If Spark has ended meanwhile, the tag is gone too; the result or the error of the block is what counts.
        with suppress(Exception):
            remove(tag)


def stop_jobs(session: SparkSession, tag: str) -> None:
    """Cancel the jobs that now run under a tag, in whatever thread they were started."""
    if is_remote():
        session.interruptTag(tag)
    else:
        session.sparkContext.cancelJobsWithTag(tag)


def is_remote() -> bool:
    """Return True if this process uses Spark Connect."""
    from pyspark.sql.utils import is_remote

    return is_remote()


def _context_tags(session: SparkSession) -> tuple[Callable[[str], None], Callable[[str], None]]:
    context = session.sparkContext
    return context.addJobTag, context.removeJobTag


def leave_call(session: SparkSession) -> None:
    """Close this thread's connection to the JVM, on which a time limit or a signal may have interrupted a call.

    The answer to that call comes later, and the next call would take it for its own. A new call opens a new connection.
    """
    if is_remote():
        return
    gateway: Any = session.sparkContext._gateway  # pyright: ignore
    connection = gateway._gateway_client.get_thread_connection()
    if connection is not None:
        connection.close()


@coroutine
def run_tagged(steps: Coroutine[Any, Any, Any], session: SparkSession, tag: str | None) -> Generator[Any, Any, Any]:
    """Await `steps`, with the tag set only while it runs, not while it waits.

    Tags belong to a thread, and other tasks run in the thread while a coroutine waits.
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
