"""Run an evaluator in a thread of this process, for code that is not asynchronous."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Self, TypeVar

from assetflow.errors import PrefectUnreachable, TimedOut
from assetflow.evaluator.incoming.catch_up import Sweeps
from assetflow.evaluator.process.evaluator import Evaluator, Options, utc_now
from assetflow.evaluator.process.service import evaluate
from assetflow.patience import AskAgain

T = TypeVar("T")

SECONDS_TO_START = 30.0

# A test asks the evaluator to read Prefect's logs when it needs that; the websocket brings the rest.
SWEEPS = Sweeps(every=timedelta(seconds=1))


class BackgroundEvaluator:
    """An evaluator that runs during the block. It takes over a Prefect server from the ledger of an earlier test.

    Parameters:
        place: the ledger's file, or its URL.
        timeout: the seconds that the evaluator may take to start.

    Attributes:
        ahead: how far its clock is ahead of the real one.
    """

    def __init__(self, place: Path | str, *, timeout: float = SECONDS_TO_START) -> None:
        self.ahead = timedelta()
        self._place = place
        self._timeout = timeout
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
        in_time = self._started.wait(self._timeout)
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        if not in_time:
            raise TimedOut(
                f"the evaluator was not ready within {self._timeout:g} s",
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


class Allowance:
    """The time that a step of a test may take; it runs from now on.

    Parameters:
        seconds: how much time.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left; below zero after the end."""
        return self._end - monotonic()

    def exceeded(self, waiting: str) -> TimedOut:
        """Return the error that says what the test waited for, and how to give it more time."""
        more = f"{2 * self.seconds:g}"
        return TimedOut(
            f"not settled within {self.seconds:g} s: waited {waiting}",
            fix=f"Give more time, as in settle(timeout={more}) or harness(timeout={more})",
        )


class Calls:
    """The calls of a test to its evaluator.

    Parameters:
        evaluator: the evaluator, which runs in a thread of its own.
        timeout: the seconds that a call may take.
    """

    def __init__(self, evaluator: BackgroundEvaluator, timeout: float) -> None:
        self.evaluator = evaluator
        self.timeout = timeout

    def now(self) -> datetime:
        """Return the time on the evaluator's clock, which a test can put forward."""
        return utc_now() + self.evaluator.ahead

    def make(
        self,
        action: Callable[[Evaluator], Coroutine[Any, Any, T]],
        waiting: str,
        allowance: Allowance | None = None,
    ) -> T:
        """Run a coroutine on the evaluator's event loop and return its result; again while Prefect does not answer.

        Parameters:
            action: the coroutine function. It may run several times.
            waiting: what the test waits for, in words: "for the update to be recorded".
            allowance: the time that it may take, if it is not that of every call.

        Raises:
            TimedOut: it took longer.
        """
        allowance = allowance or Allowance(self.timeout)
        attempts = AskAgain(max(0.0, allowance.left)).start()
        troubles = ""
        while (left := attempts.left) >= 0:
            try:
                return self.evaluator.call(action, left)
            except TimeoutError:
                troubles = self.evaluator.troubles or troubles
                break
            except PrefectUnreachable as error:
                troubles = str(error)
                sleep(attempts.pause(error.retry_after) or max(0.0, attempts.left))
        raise allowance.exceeded(f"{waiting}; in trouble: {troubles}" if troubles else waiting)
