"""Run an evaluator in a thread of this process, and run here what it starts, for tests that are not asynchronous."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from inspect import isawaitable
from pathlib import Path
from threading import Event, Thread
from time import sleep
from types import TracebackType
from typing import Any, Self, TypeVar, cast
from uuid import UUID

from prefect import Flow
from prefect.client.orchestration import get_client

from assetflow.errors import PrefectUnreachable, TimedOut
from assetflow.evaluator.incoming.catch_up import Sweeps
from assetflow.evaluator.process.evaluator import Evaluator, Options, utc_now
from assetflow.evaluator.process.service import evaluate
from assetflow.ledger import Reader
from assetflow.prefect_io.connection import AskAgain, Attempts
from assetflow.prefect_io.internals import needed_for
from assetflow.prefect_io.open_runs import run_end

T = TypeVar("T")

SECONDS_TO_START = 30.0

# A test asks the evaluator to read Prefect's logs when it needs that; the websocket brings the rest.
SWEEPS = Sweeps(every=timedelta(seconds=1))


class BackgroundEvaluator:
    """An evaluator that runs during the block. It takes over a Prefect server from the ledger of an earlier test.

    Parameters:
        place: the ledger's file, or its URL.
        timeout: the seconds that the evaluator may take to start, and for what is made on it.

    Attributes:
        ahead: how far its clock is ahead of the real one.
    """

    def __init__(self, place: Path | str, *, timeout: float = SECONDS_TO_START) -> None:
        self.ahead = timedelta()
        self._place = place
        self.timeout = timeout
        self._started = Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self.evaluator: Evaluator
        # Prefect's settings are context variables: the thread has to see those of the test.
        context = contextvars.copy_context()
        self._thread = Thread(target=context.run, args=(self._work,), name="assetflow-evaluator", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        in_time = self._started.wait(self.timeout)
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        if not in_time:
            raise TimedOut(
                f"the evaluator was not ready within {self.timeout:g} s",
                fix="Check that the Prefect server answers, or give more time: harness(timeout=120)",
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    @property
    def troubles(self) -> str:
        """Describe the evaluator's troubles; an empty text if there are none."""
        return ", ".join(f"{name} ({trouble})" for name, trouble in self.evaluator.health.troubles.items())

    def call(self, action: Callable[[Evaluator], Coroutine[Any, Any, T]], timeout: float) -> T:
        """Run a coroutine on the evaluator's event loop and return its result.

        Raises:
            TimeoutError: it took longer than `timeout` seconds.
        """
        if self._failure is not None:
            raise self._failure
        future = asyncio.run_coroutine_threadsafe(action(self.evaluator), self._loop)
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise

    def now(self) -> datetime:
        """Return the time on the evaluator's clock, which a test can put forward."""
        return utc_now() + self.ahead

    def make(
        self,
        action: Callable[[Evaluator], Coroutine[Any, Any, T]],
        waiting: str,
        allowance: Attempts | None = None,
    ) -> T:
        """Run a coroutine on the evaluator's event loop and return its result; again while Prefect does not answer.

        Parameters:
            action: the coroutine function. It may run several times.
            waiting: what the test waits for, in words: "for the update to be recorded".
            allowance: the time that it may take, if it is not that of every call.

        Raises:
            TimedOut: it took longer.
        """
        allowance = allowance or AskAgain(self.timeout).start()
        troubles = ""
        while (left := allowance.left) >= 0:
            try:
                return self.call(action, left)
            except TimeoutError:
                troubles = self.troubles or troubles
                break
            except PrefectUnreachable as error:
                troubles = str(error)
                sleep(allowance.pause(error.retry_after) or max(0.0, allowance.left))
        raise exceeded(allowance, f"{waiting}; in trouble: {troubles}" if troubles else waiting)

    def _work(self) -> None:
        try:
            asyncio.run(self._evaluate())
        except BaseException as error:
            self._failure = error
        finally:
            self._started.set()

    async def _evaluate(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()

        @contextmanager
        def at_work(evaluator: Evaluator) -> Generator[None]:
            self.evaluator = evaluator
            self._started.set()
            yield

        options = Options(take_over=True, sweeps=SWEEPS, ahead=lambda: self.ahead)
        await evaluate(options, place=self._place, stop=self._stop, at_work=at_work)


def exceeded(allowance: Attempts, waiting: str) -> TimedOut:
    """Return the error that says what the test waited for, and how to give it more time."""
    seconds = allowance.policy.seconds
    return TimedOut(
        f"not settled within {seconds:g} s: waited {waiting}",
        fix=f"Give more time, as in settle(timeout={2 * seconds:g}) or harness(timeout={2 * seconds:g})",
    )


@dataclass(frozen=True)
class StartedRun:
    """A run that updates started.

    Attributes:
        name: the name of its flow.
        started_by: the runs that made the updates it consumed, oldest first.
    """

    name: str
    started_by: tuple[UUID, ...]


def circle_to(run: UUID, runs: Mapping[UUID, StartedRun]) -> list[str]:
    """Return the names of the flows in a circle that led to this run, or an empty list if there is no circle."""
    names: list[str] = []
    seen: set[UUID] = set()
    current: UUID | None = run
    while current is not None and current not in seen:
        seen.add(current)
        name = runs[current].name
        if name in names:
            return [name, *reversed(names[names.index(name) :])]
        names.append(name)
        # The run that completed the condition is the last one.
        current = next((each for each in reversed(runs[current].started_by) if each in runs), None)
    return []


AnyFlow = Flow[..., Any]


class StartedRuns:
    """The flow runs that updates have started in a test.

    Parameters:
        reader: reads the test's ledger.
        evaluator: what the test asks of its evaluator.
        deployed: the deployed flows by deployment; the harness adds to it.
    """

    def __init__(self, reader: Reader, evaluator: BackgroundEvaluator, deployed: Mapping[UUID, AnyFlow]) -> None:
        self._reader = reader
        self._evaluator = evaluator
        self._deployed = deployed
        self._executed = 0

    def execute(self, allowance: Attempts) -> bool:
        """Run what was started, or is retried, and has not run yet, oldest first; return whether there was anything.

        Raises:
            TimedOut: the time ended before all of them had run.
        """
        waiting = [
            (each.flow_run_id, each.deployment_id)
            for each in self._reader.decisions.running()
            if each.flow_run_id and each.deployment_id in self._deployed
        ]
        for done, (run, deployment) in enumerate(waiting):
            if allowance.left < 0:
                left = f"for {len(waiting) - done} more started runs to be run, after {self._executed} that were"
                raise self.circle(allowance) or exceeded(allowance, left)
            self._execute(run, self._deployed[deployment], allowance)
        return bool(waiting)

    def circle(self, allowance: Attempts) -> TimedOut | None:
        """Return an error that names the flows that keep starting each other, if such flows started the newest run."""
        runs = self._by_id()
        names = circle_to(next(iter(runs)), runs) if runs else []
        if not names:
            return None
        return TimedOut(
            f"Flows keep starting each other: {' → '.join(names)}. This went on for {allowance.policy.seconds:g} s",
            fix="Let one of them be scheduled on something else, or look at single steps: settle(execute=False)",
        )

    def _execute(self, run: UUID, flow: AnyFlow, allowance: Attempts) -> None:
        self._executed += 1
        with get_client(sync_client=True) as client:
            flow_run = client.read_flow_run(run)
        left = max(0.1, allowance.left)
        own = flow.timeout_seconds
        limited = flow if own is not None and own <= left else flow.with_options(timeout_seconds=left)
        with needed_for("The harness's execution of a started run"):
            from prefect.flow_engine import run_flow
        # A failed run is a result too, which the test reads from its state.
        state = finished(run_flow(limited, flow_run=flow_run, return_type="state"))
        end_of_run = run_end(state.type.value, state.name or "", state.timestamp)
        assert end_of_run is not None, "the run of a flow that was called has ended"

        async def tell(evaluator: Evaluator) -> None:
            await evaluator.run_watch.end(run, end_of_run)

        self._evaluator.make(tell, f"for the end of the run {flow_run.name} of {flow.name} to be known")
        if limited is not flow and state.name == "TimedOut":
            stopped = f"for the run {flow_run.name} of {flow.name} to end; it was stopped"
            raise self.circle(allowance) or exceeded(allowance, stopped)

    def _by_id(self) -> dict[UUID, StartedRun]:
        """Return the runs that decisions started, by id, newest first."""
        decisions = [each for each in self._reader.decisions.find(limit=10_000) if each.flow_run_id is not None]
        events = self._reader.decisions.events_of(decisions)
        return {
            cast(UUID, each.flow_run_id): StartedRun(
                each.consumer_name.partition("/")[0],
                tuple(event.source_flow_run.id for event in events[each.id] if event.source_flow_run),
            )
            for each in decisions
        }


def finished(result: Any) -> Any:
    """Return the result of a flow that was called, awaited if it has to be."""

    async def finish() -> Any:
        return await result

    return asyncio.run(finish()) if isawaitable(result) else result
