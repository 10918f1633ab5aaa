"""How many flow runs a worker starts at a time."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun
    from prefect.client.schemas.responses import WorkerFlowRunResponse

# More at a time make each other wait for a core and for Prefect's server, which refuses requests when it is too busy.
AT_A_TIME = 2 * (os.cpu_count() or 1)
# A run that has not begun by then waits for something else, such as a slow pull step.
SECONDS = 5.0


class Starts:
    """The runs that this worker has taken and that have not begun: a few at a time, however many are due.

    A run makes most of its requests before its first line of code. If fifty begin at once, Prefect's server on SQLite
    refuses most of these requests, and Prefect's client repeats them after two seconds or more. How many runs go on at
    the same time is not limited.

    Parameters:
        at_a_time: how many runs may be about to begin.
        seconds: after how long a run that has not begun no longer counts.
        clock: the time in seconds.
    """

    def __init__(
        self, at_a_time: int = AT_A_TIME, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._at_a_time = at_a_time
        self._seconds = seconds
        self._clock = clock
        # Each with the time from which it no longer counts.
        self._until: dict[str, float] = {}
        self._is_short = False

    def choose(self, due: Sequence[WorkerFlowRunResponse]) -> list[WorkerFlowRunResponse]:
        """Return those of the runs, in their order, that begin now, later, or were about to begin before."""
        now = self._clock()
        self._until = {run: until for run, until in self._until.items() if until > now}
        chosen = [each for each in due if self._has_place(each.flow_run, now)]
        self._is_short = len(chosen) < len(due)
        return chosen

    def _has_place(self, run: FlowRun, now: float) -> bool:
        scheduled = run.next_scheduled_start_time
        if scheduled is not None and scheduled > datetime.now(UTC):
            # Prefect hands runs out seconds before their time, and they wait for it.
            return True
        if str(run.id) not in self._until and len(self._until) >= self._at_a_time:
            return False
        self._until.setdefault(str(run.id), now + self._seconds)
        return True

    def begun(self, run: str) -> bool:
        """Note that the run with this id has begun or ended, and return True if another one waits for its place."""
        return self._until.pop(run, None) is not None and self._is_short

    def seconds_to_place(self) -> float:
        """Return after how long there is room for a run that waits; infinity if none waits."""
        if not self._is_short:
            return math.inf
        return max(0.0, min(self._until.values(), default=0.0) - self._clock())
