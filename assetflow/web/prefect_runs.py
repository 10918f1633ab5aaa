"""The states of runs that have not ended, asked of Prefect for the runs that a page shows, and kept for seconds.

The ledger knows that a run was launched, and how it ended. What lies between changes often, and is not written to it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from uuid import UUID

from assetflow.api.backend import Backend
from assetflow.core.explain import RunFacts
from assetflow.errors import AssetflowError
from assetflow.ledger.records import DecisionRecord
from assetflow.prefect_io.run_states import MOST, run_states
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


def states_address(decisions: Iterable[DecisionRecord | RunFacts | None]) -> str:
    """Return the address that tells the states of those of these runs that have not ended; "" for none."""
    runs = [each.flow_run_id for each in decisions if each is not None and each.ended is None]
    named = ",".join(str(run) for run in runs[:MOST] if run is not None)
    return url("/run-states", runs=named) if named else ""


def look_again(decisions: Iterable[DecisionRecord | None]) -> str:
    """Return the htmx trigger for a page that shows these decisions; empty if all their runs have ended."""
    under_way = [each for each in decisions if each is not None and each.ended is None]
    if not under_way:
        return ""
    return "every 2s" if any(each.flow_run_id is None for each in under_way) else "every 10s"
