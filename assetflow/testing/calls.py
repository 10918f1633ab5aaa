"""Ask the evaluator of a test for something, within the time that the test allows."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime
from time import monotonic, sleep
from typing import Any, TypeVar

from assetflow.errors import PrefectUnreachable, TimedOut
from assetflow.evaluator.process.evaluator import Evaluator, utc_now
from assetflow.patience import AskAgain
from assetflow.testing.background import BackgroundEvaluator

T = TypeVar("T")


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
