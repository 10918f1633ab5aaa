"""The states of runs that have not ended, asked of Prefect for the runs that a page shows, and kept for seconds.

The ledger knows that a run was launched, and how it ended. What lies between changes often, and is not written to it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from uuid import UUID

from fastapi.concurrency import run_in_threadpool

from assetflow.api.requests import Backend
from assetflow.core.explain import NotStarted, RunFacts
from assetflow.core.explain.trace import TracedRun
from assetflow.errors import AssetflowError
from assetflow.ledger.records import DecisionRecord
from assetflow.prefect_io.flow_runs import MOST, run_states
from assetflow.prefect_io.open_runs import not_started
from assetflow.web.pages import url

# Seconds for which an answer counts as the present, and for which pages show it while a newer one is on its way.
FRESH = 2.0
SHOWN = 30.0
SECONDS_TO_ANSWER = 3.0
_KEPT = 5_000


class RunStates:
    """The last known states of runs in Prefect."""

    def __init__(self, backend: Backend, clock: Callable[[], float] = time.monotonic) -> None:
        self._backend = backend
        self._clock = clock
        self._known: dict[UUID, tuple[float, str]] = {}

    def shown(self, run: UUID | None) -> str:
        """Return the state to show for a run; "" if it is not known."""
        if run is None:
            return ""
        asked, name = self._known.get(run, (0.0, ""))
        return name if self._clock() - asked < SHOWN else ""

    async def look(self, runs: Collection[UUID]) -> None:
        """Ask Prefect for the states of these runs, in one request. If it does not answer, nothing changes."""
        now = self._clock()
        stale = [run for run in runs if run not in self._known or now - self._known[run][0] >= FRESH]
        if not stale:
            return
        with suppress(AssetflowError, TimeoutError):
            async with asyncio.timeout(SECONDS_TO_ANSWER), self._backend.prefect() as api:
                found = await run_states(api, stale)
            if len(self._known) > _KEPT:
                self._known.clear()
            self._known |= {run: (now, name) for run, name in found.items()}


def states_address(decisions: Iterable[DecisionRecord | RunFacts | TracedRun | None]) -> str:
    """Return the address that tells the states of those of these runs that have not ended; "" for none."""
    runs = [each.flow_run_id for each in decisions if each is not None and each.ended is None]
    named = ",".join(str(run) for run in runs[:MOST] if run is not None)
    return url("/run-states", runs=named) if named else ""


def look_again(decisions: Iterable[DecisionRecord | TracedRun | None]) -> str:
    """Return the htmx trigger for a page that shows these decisions; empty if all their runs have ended."""
    under_way = [each for each in decisions if each is not None and each.ended is None]
    if not under_way:
        return ""
    return "every 2s" if any(each.flow_run_id is None for each in under_way) else "every 10s"


MOST_RUNNING = 200

LateRun = tuple[DecisionRecord, NotStarted]


class LateRuns:
    """The runs that waited in a work pool when Prefect was last asked."""

    def __init__(self, backend: Backend, clock: Callable[[], float] = time.monotonic) -> None:
        self._backend = backend
        self._clock = clock
        self._asked: float | None = None
        self._found: Sequence[LateRun] = ()

    def shown(self) -> Sequence[LateRun]:
        """Return the runs that a page shows, the longest wait first; no runs if Prefect has been silent for long."""
        return self._found if self._age() < SHOWN else ()

    async def look(self) -> Sequence[LateRun]:
        """Ask Prefect, in one request, unless it was asked just now. If it does not answer, nothing changes."""
        if self._age() >= FRESH:
            now = self._clock()
            running = await run_in_threadpool(self._backend.ledger.reader.decisions.running, limit=MOST_RUNNING)
            by_run = {each.flow_run_id: each for each in running if each.flow_run_id is not None}
            with suppress(AssetflowError, TimeoutError):
                async with asyncio.timeout(SECONDS_TO_ANSWER), self._backend.prefect() as api:
                    found = await not_started(api, list(by_run), self._backend.now())
                late = sorted(found.items(), key=lambda item: item[1].since)
                self._found, self._asked = [(by_run[run], each) for run, each in late], now
        return self.shown()

    def _age(self) -> float:
        return float("inf") if self._asked is None else self._clock() - self._asked
