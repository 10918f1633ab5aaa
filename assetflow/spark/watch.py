"""Stops the Spark work of a task that Prefect has given up: its time is over, or its flow run is cancelled.

A call of Spark's cannot be interrupted from Python, and Spark goes on with what a thread or a process has left. So a
thread of this process watches its tasks as long as any is at work, and interrupts their jobs by tag. The call then
fails, and the task with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Condition, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from prefect.context import TaskRunContext

from assetflow.errors import AssetflowError, SparkStopped
from assetflow.prefect_io.internals import flow_run_contexts
from assetflow.prefect_io.task_api import TaskApi
from assetflow.spark.tags import job_tag, stop_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        flow_runs: those it belongs to; if one is cancelled, the work is.
        deadline: when its time is over, by the monotonic clock.
        is_cancelled: its flow run is.
    """

    session: SparkSession
    tag: str
    flow_runs: frozenset[UUID] = frozenset()
    deadline: float | None = None
    is_cancelled: bool = False
    stop_again: float = 0.0

    @classmethod
    def of_task(cls, session: SparkSession) -> Work | None:
        """That of the task that runs here; none outside of Prefect."""
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
        """Interrupt its jobs that run now."""
        try:
            stop_jobs(self.session, self.tag)
        except Exception as error:
            logger.warning("The Spark jobs of %s could not be stopped: %s", self.tag, str(error).partition("\n")[0])


@dataclass
class Watch:
    """Watches the work of this process; its thread lives as long as there is any.

    Parameters:
        ask: which of these flow runs are cancelled.
    """

    ask: AskCancelled
    _work: set[Work] = field(default_factory=set[Work])
    _changed: Condition = field(default_factory=Condition)
    _thread: Thread | None = None

    @contextmanager
    def over(self, work: Work) -> Generator[None]:
        """Stop this work when it has to, and what is left of it when the block fails.

        Raises:
            SparkStopped: its flow run was cancelled meanwhile.
        """
        self._begin(work)
        try:
            yield
        except BaseException as error:
            _stop_in_time(work)
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
                # Prefect's settings belong to a context.
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
                    # What runs the job may begin another one.
                    each.stop_again = now + AGAIN_SECONDS

    def _wait(self) -> list[Work]:
        """Wait a moment; the work that is there then. Without any, the thread ends."""
        with self._changed:
            if self._work:
                self._changed.wait(LOOK_SECONDS)
            if not self._work:
                self._thread = None
            return list(self._work)


def _stop_in_time(work: Work) -> None:
    """Stop the work, but do not wait long for a Spark that does not answer."""
    thread = Thread(target=work.stop, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)


def _stopped() -> SparkStopped:
    return SparkStopped("the flow run was cancelled, and its Spark jobs were stopped")


def ask_prefect(flow_runs: Iterable[UUID]) -> set[UUID]:
    """Those of the flow runs that are cancelled, or about to be; none if Prefect does not say."""
    found: set[UUID] = set()
    with suppress(AssetflowError), TaskApi.connect(patience=ASK_SECONDS) as api:
        for run in flow_runs:
            answer = cast("dict[str, Any]", api.get(f"/flow_runs/{run}"))
            if answer.get("state_type") in _CANCELLED:
                found.add(run)
    return found


_watch = Watch(ask_prefect)


@contextmanager
def watched(session: SparkSession) -> Generator[None]:
    """Stop what the task that runs here does with Spark, when its time is over or its flow run is cancelled.

    Raises:
        SparkStopped: the flow run was cancelled.
    """
    work = Work.of_task(session)
    if work is None:
        yield
        return
    with _watch.over(work):
        yield
