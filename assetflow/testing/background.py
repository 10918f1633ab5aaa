"""Run an evaluator in a thread of this process, for code that is not asynchronous."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self, TypeVar

from assetflow.errors import TimedOut
from assetflow.evaluator.incoming.catch_up import Sweeps
from assetflow.evaluator.process.evaluator import Evaluator, Options
from assetflow.evaluator.process.service import evaluate

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
