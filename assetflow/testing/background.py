"""An evaluator in a thread of this process, for code that is not asynchronous."""

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
from assetflow.evaluator.catch_up import Sweeps
from assetflow.evaluator.evaluator import Evaluator, Options
from assetflow.evaluator.service import evaluate

T = TypeVar("T")

SECONDS_TO_START = 30.0
# A test asks for a look at Prefect's logs when it wants one; the websocket tells of the rest.
SWEEPS = Sweeps(every=timedelta(seconds=1))


class BackgroundEvaluator:
    """An evaluator at work while the block lasts; it takes over a Prefect that belongs to an earlier test's ledger.

    Parameters:
        place: the ledger's file, or its address.
    """

    def __init__(self, place: Path | str) -> None:
        self._place = place
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
        in_time = self._started.wait(SECONDS_TO_START)
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        if not in_time:
            raise TimedOut(f"the evaluator was not ready within {SECONDS_TO_START:.0f} s", fix="Does Prefect answer?")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def call(self, action: Callable[[Evaluator], Coroutine[Any, Any, T]], timeout: float) -> T:
        """The result of something asynchronous that the evaluator does.

        Raises:
            TimedOut: it took longer than `timeout` seconds.
        """
        if self._failure is not None:
            raise self._failure
        future = asyncio.run_coroutine_threadsafe(action(self.evaluator), self._loop)
        try:
            return future.result(timeout)
        except TimeoutError as error:
            future.cancel()
            raise TimedOut(
                f"not settled within {timeout:g} s; in trouble: {self.evaluator.health.troubles or 'nothing'}",
                fix="Give more time, or look into the log of `assetflow.evaluator`",
            ) from error

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

        options = Options(take_over=True, sweeps=SWEEPS)
        await evaluate(options, place=self._place, stop=self._stop, at_work=at_work)
