"""The runs that wait in a work pool, asked of Prefect for all that go on, and kept for seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from fastapi.concurrency import run_in_threadpool

from assetflow.api.backend import Backend
from assetflow.core.explain import NotStarted
from assetflow.errors import AssetflowError
from assetflow.ledger.records import DecisionRecord
from assetflow.prefect_io.not_started import not_started
from assetflow.web.prefect_runs import FRESH, SECONDS_TO_ANSWER, SHOWN

MOST = 200

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
            running = await run_in_threadpool(self._backend.ledger.reader.decisions.running, limit=MOST)
            by_run = {each.flow_run_id: each for each in running if each.flow_run_id is not None}
            with suppress(AssetflowError, TimeoutError):
                async with asyncio.timeout(SECONDS_TO_ANSWER), self._backend.prefect() as api:
                    found = await not_started(api, list(by_run), self._backend.now())
                late = sorted(found.items(), key=lambda item: item[1].since)
                self._found, self._asked = [(by_run[run], each) for run, each in late], now
        return self.shown()

    def _age(self) -> float:
        return float("inf") if self._asked is None else self._clock() - self._asked
