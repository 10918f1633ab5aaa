"""Stop the Spark work of a task that has timed out, or whose flow run is cancelled.

Python cannot interrupt a call to Spark, and Spark continues the jobs of a thread or a process that has ended. So a
thread of this process watches the running tasks, and interrupts their jobs by tag. The call then fails, and with it the
task.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from threading import Condition, Thread
from time import monotonic
from types import coroutine
from typing import TYPE_CHECKING, Any, cast
from uuid import NAMESPACE_URL, UUID, uuid5

from prefect.context import TaskRunContext

from assetflow.errors import AssetflowError, SparkStopped
from assetflow.prefect_io.internals import flow_run_contexts
from assetflow.prefect_io.rest import TaskApi
from assetflow.spark.connect import in_time

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


logger = logging.getLogger("assetflow.spark")

LOOK_SECONDS = 0.25
ASK_SECONDS = 3.0
AGAIN_SECONDS = 1.0
PATIENCE_SECONDS = 5.0
_CANCELLED = frozenset({"CANCELLING", "CANCELLED"})

AskCancelled = Callable[[Iterable[UUID]], set[UUID]]


@dataclass(eq=False)
class Work:
    """The Spark work of one attempt of a task.

    Attributes:
        flow_runs: the flow runs that it belongs to; if one of them is cancelled, the work has to stop.
        deadline: the time at which the task times out, by the monotonic clock.
        is_cancelled: True if one of its flow runs is cancelled.
    """

    session: SparkSession
    tag: str
    flow_runs: frozenset[UUID] = frozenset()
    deadline: float | None = None
    is_cancelled: bool = False
    stop_again: float = 0.0

    @classmethod
    def of_task(cls, session: SparkSession) -> Work | None:
        """Return the work of the current task, or `None` outside of one."""
        context = TaskRunContext.get()
        if context is None:
            return None
        around = {each.flow_run.id for each in flow_run_contexts() if each.flow_run is not None}
        own = context.task_run.flow_run_id
        seconds = context.task.timeout_seconds
        return cls(
            session,
            job_tag(str(context.task_run.id)),
            frozenset(around if own is None else around | {own}),
            None if seconds is None else monotonic() + seconds,
        )

    def has_to_stop(self, now: float) -> bool:
        return self.is_cancelled or (self.deadline is not None and now >= self.deadline)

    def stop(self) -> None:
        """Interrupt the jobs that run now."""
        try:
            stop_jobs(self.session, self.tag)
        except Exception as error:
            logger.warning("The Spark jobs of %s could not be stopped: %s", self.tag, reason_of(error))


@dataclass
class Watch:
    """The watch over the Spark work of this process, by a thread that runs while there is any work.

    Parameters:
        ask: returns those of the given flow runs that are cancelled.
    """

    ask: AskCancelled
    _work: set[Work] = field(default_factory=set[Work])
    _changed: Condition = field(default_factory=Condition)
    _thread: Thread | None = None

    @property
    def is_needed(self) -> bool:
        """True if there is any work."""
        return bool(self._work)

    @contextmanager
    def over(self, work: Work) -> Generator[None]:
        """Stop the work when it has to stop, and its remaining jobs if the block fails.

        Raises:
            SparkStopped: the flow run was cancelled.
        """
        self._begin(work)
        try:
            yield
        except BaseException as error:
            # Do not wait long if Spark does not answer.
            in_time(work.stop, PATIENCE_SECONDS)
            if isinstance(error, Exception) and work.is_cancelled:
                raise _stopped() from error
            raise
        finally:
            self._end(work)
        if work.is_cancelled:
            raise _stopped()

    def _begin(self, work: Work) -> None:
        with self._changed:
            self._work.add(work)
            if self._thread is None:
                # Prefect's settings are context variables, which the thread needs.
                self._thread = Thread(target=copy_context().run, args=(self._run,), name="assetflow-watch", daemon=True)
                self._thread.start()

    def _end(self, work: Work) -> None:
        with self._changed:
            self._work.discard(work)
            self._changed.notify()

    def _run(self) -> None:
        ask_at = monotonic() + ASK_SECONDS
        while work := self._wait():
            now = monotonic()
            if now >= ask_at:
                cancelled = self.ask({run for each in work for run in each.flow_runs})
                for each in work:
                    each.is_cancelled = each.is_cancelled or not cancelled.isdisjoint(each.flow_runs)
                ask_at = monotonic() + ASK_SECONDS
            for each in work:
                if each.has_to_stop(now) and now >= each.stop_again:
                    each.stop()
                    # Stop it again next time: the thread that ran the job may start another one.
                    each.stop_again = now + AGAIN_SECONDS

    def _wait(self) -> list[Work]:
        """Wait a moment and return the current work. If there is none, the thread ends."""
        with self._changed:
            if self._work:
                self._changed.wait(LOOK_SECONDS)
            if not self._work:
                self._thread = None
            return list(self._work)


def _stopped() -> SparkStopped:
    return SparkStopped("the flow run was cancelled, and its Spark jobs were stopped")


def ask_prefect(flow_runs: Iterable[UUID]) -> set[UUID]:
    """Return the flow runs that are cancelled or being cancelled; an empty set if Prefect does not answer."""
    found: set[UUID] = set()
    with suppress(AssetflowError), TaskApi.connect(patience=ASK_SECONDS) as api:
        for run in flow_runs:
            answer = cast("dict[str, Any]", api.get(f"/flow_runs/{run}"))
            if answer.get("state_type") in _CANCELLED:
                found.add(run)
    return found


_watch = Watch(ask_prefect)


def is_task_running() -> bool:
    """Return True in a task, and in any thread of a process in which a `spark_task` runs."""
    return TaskRunContext.get() is not None or _watch.is_needed


@contextmanager
def watched(session: SparkSession) -> Generator[None]:
    """Stop the Spark work of the current task if it times out, or if its flow run is cancelled.

    Raises:
        SparkStopped: the flow run was cancelled.
    """
    work = Work.of_task(session)
    if work is None:
        yield
        return
    with _watch.over(work):
        yield


_MOST_SESSIONS = 20
_CLOSED = "INVALID_HANDLE.SESSION_CLOSED"


def session_id(flow_run: UUID, number: int) -> UUID:
    """Return the id of a flow run's Connect session; `number` counts its sessions that were closed before."""
    return uuid5(NAMESPACE_URL, f"assetflow:flow-run:{flow_run}:{number}")


def take_over_session(url: str) -> str:
    """Return the address with the session of the current flow run, and interrupt what its earlier process left there.

    The address does not change outside a flow run, in a process that shares a flow run with others, and if the user has
    set a session id.
    """
    flow_run = _flow_run_of_process()
    if flow_run is None or ";session_id=" in url:
        return url
    for number in range(_MOST_SESSIONS):
        with_session = _with_session(url, session_id(flow_run, number))
        if _interrupt_all(with_session):
            return with_session
    return url


def _flow_run_of_process() -> UUID | None:
    contexts = list(flow_run_contexts())
    if not contexts or contexts[-1].detached or contexts[-1].flow_run is None:
        return None
    return contexts[-1].flow_run.id


def _with_session(url: str, session: UUID) -> str:
    # sc://host:port/;name=value;name=value
    parameters = url if "/;" in url else f"{url.rstrip('/')}/"
    return f"{parameters.rstrip(';')};session_id={session}"


def _interrupt_all(url: str) -> bool:
    """Interrupt everything that runs in a session. Return False if the session is closed."""
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import SparkConnectClient

    client = SparkConnectClient(url)
    try:
        interrupted = client.interrupt_all()
    except PySparkException as error:
        if _CLOSED in str(error):
            return False
        logger.warning(
            "Spark jobs of an earlier process of this flow run may still run; Spark could not be asked: %s",
            reason_of(error),
        )
    else:
        if interrupted:
            logger.info("Interrupted %d Spark operations of an earlier process of this flow run", len(interrupted))
    finally:
        client.close()
    return True


_JAVA = re.compile(r"An error occurred while calling .*\n: (?:\w+\.)*(.+)")
_PYTHON = "Traceback (most recent call last):"
# In a traceback of a worker, and in what Spark says of the call of a DataFrame's method.
_PLACE = re.compile(r'^ *File "(?!.*/site-packages/)(.+)", line (\d+)|was called from\n(.+):(\d+)', re.MULTILINE)


def reason_of(error: BaseException) -> str:
    """Return what went wrong, and where in the user's code if Spark knows it.

    Spark puts the reason behind the traceback of a Python worker, or before that of a JVM, of hundreds of lines.
    """
    text = str(error).partition("\n\nJVM stacktrace:")[0].strip()
    _, in_worker, trace = text.rpartition(_PYTHON)
    raised = [line for line in trace.splitlines()[1:] if line[:1].strip()] if in_worker else []
    java = _JAVA.match(text)
    first = java[1] if java else f"{type(error).__name__}: {''.join(text.splitlines()[:1])}"
    reason = raised[0] if raised else first
    places = [":".join(filter(None, each)) for each in _PLACE.findall(text)]
    return f"{reason} ({places[-1]})" if places else reason
