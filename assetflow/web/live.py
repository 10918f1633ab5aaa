"""Tell open pages what has changed: in the ledger, by server-sent events; and of runs, by what Prefect says now."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import EventSourceResponse, format_sse_event

from assetflow.api.requests import Backend
from assetflow.api.security import Access
from assetflow.core.explain import NotStarted, RunFacts
from assetflow.core.explain.trace import TracedRun
from assetflow.errors import AssetflowError, LedgerError
from assetflow.ledger.read.events import Position
from assetflow.ledger.records import DecisionRecord
from assetflow.prefect_io.flow_runs import MOST, run_states
from assetflow.prefect_io.open_runs import not_started
from assetflow.web.pages import url
from assetflow.web.troubles import ShownTrouble, troubles_of

router = APIRouter()

SECONDS = 1.0
BEAT = 20.0
MOST_CHANGES = 200


@dataclass(frozen=True)
class LedgerChange:
    """The changes in the ledger since the last look.

    Attributes:
        kinds: what changed: some of `assets`, `events`, `decisions`, `troubles`.
        uris: the assets of the new events; `None` if there are too many to list.
        consumers: the consumers of the new decisions; `None` if there are too many to list.
    """

    kinds: frozenset[str]
    uris: frozenset[str] | None = frozenset()
    consumers: frozenset[str] | None = frozenset()


_ANYTHING = LedgerChange(frozenset({"assets", "events", "decisions"}), None, None)


class Live:
    """Reads the ledger once a second while a page is open, and sends the changes to all open pages.

    Attributes:
        seen: the position up to which changes were sent; `None` while no page is open.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._pages: set[asyncio.Queue[LedgerChange | None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self.seen: Position | None = None

    async def changes(self, seen: Position | None = None) -> AsyncGenerator[LedgerChange | None]:
        """Yield each change, and `None` now and then, so that the caller can check that the page is still open.

        Parameters:
            seen: the position when the page was made; the changes since then come first.
        """
        told = asyncio.Queue[LedgerChange | None]()
        self._pages.add(told)
        if self._looking is None:
            self.seen = seen
            self._looking = asyncio.create_task(self._look())
        elif seen is not None and seen != self.seen:
            told.put_nowait(_ANYTHING)
        try:
            while True:
                try:
                    async with asyncio.timeout(BEAT):
                        change = await told.get()
                except TimeoutError:
                    yield None
                    continue
                if change is None:
                    return
                yield change
        finally:
            self._pages.discard(told)
            if not self._pages:
                self._rest()

    def stop(self) -> None:
        """End all streams."""
        for told in self._pages:
            told.put_nowait(None)

    def _rest(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = self.seen = None

    async def _look(self) -> None:
        troubles: list[ShownTrouble] | None = None
        while True:
            # The ledger may be unreadable for a moment: read it again next time.
            with suppress(LedgerError):
                now = await run_in_threadpool(troubles_of, self._backend)
                change, self.seen = await run_in_threadpool(self._since, self.seen)
                kinds = change.kinds | ({"troubles"} if troubles not in (None, now) else frozenset[str]())
                troubles = now
                if kinds:
                    for told in self._pages:
                        told.put_nowait(LedgerChange(kinds, change.uris, change.consumers))
            await asyncio.sleep(SECONDS)

    def _since(self, seen: Position | None) -> tuple[LedgerChange, Position]:
        reader = self._backend.ledger.reader
        newest = reader.feed.end()
        if seen is None or seen == newest:
            return LedgerChange(frozenset()), newest
        kinds = {name for name in ("asset", "event", "decision") if getattr(seen, name) != getattr(newest, name)}
        named = frozenset(f"{name}s" for name in kinds)
        if max(newest.event - seen.event, newest.decision - seen.decision) > MOST_CHANGES:
            return LedgerChange(named, None, None), newest
        found = reader.feed.after(seen, limit=MOST_CHANGES + 1)
        uris = frozenset(event.uri for event, _ in found.events)
        return LedgerChange(named, uris, frozenset(made.consumer_name for made, _ in found.decisions)), newest


@router.get("/live")
async def stream(
    request: Request,
    asset: Annotated[str | None, Query(max_length=1500)] = None,
    consumer: Annotated[str | None, Query(max_length=1000)] = None,
    seen: Annotated[str | None, Query(pattern=r"^\d{1,18}\.\d{1,18}\.\d{1,18}$")] = None,
) -> EventSourceResponse:
    """Stream the changes: `assets`, `events`, `decisions` and `troubles`, each as an event with that name.

    Parameters:
        asset: only events of this asset, by URI.
        consumer: only decisions of this consumer.
        seen: the last asset, event and decision that the page has seen, as `3.17.5`.
    """
    live: Live = request.app.state.live

    async def told() -> AsyncGenerator[bytes]:
        yield format_sse_event(retry=3000)
        async for change in live.changes(None if seen is None else Position(*map(int, seen.split(".")))):
            if change is None:
                access: Access = request.app.state.access
                with suppress(LedgerError):
                    if not await access.rights(request.headers):
                        # The user has logged out.
                        return
                yield format_sse_event(comment="here")
                continue
            for kind in sorted(change.kinds):
                if _concerns(kind, change, asset, consumer):
                    yield format_sse_event(event=kind, data_str=json.dumps(kind))

    return EventSourceResponse(told(), headers={"cache-control": "no-store"})


def _concerns(kind: str, change: LedgerChange, asset: str | None, consumer: str | None) -> bool:
    if kind == "events" and asset is not None and change.uris is not None:
        return asset in change.uris
    if kind == "decisions" and consumer is not None and change.consumers is not None:
        return consumer in change.consumers
    return True


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
        self._asked = float("-inf")
        self._found: Sequence[LateRun] = ()

    def shown(self) -> Sequence[LateRun]:
        """Return the runs that a page shows, the longest wait first; no runs if Prefect has been silent for long."""
        return self._found if self._clock() - self._asked < SHOWN else ()

    async def look(self) -> Sequence[LateRun]:
        """Ask Prefect, in one request, unless it was asked just now. If it does not answer, nothing changes."""
        now = self._clock()
        if now - self._asked >= FRESH:
            running = await run_in_threadpool(self._backend.ledger.reader.decisions.running, limit=MOST_RUNNING)
            by_run = {each.flow_run_id: each for each in running if each.flow_run_id is not None}
            with suppress(AssetflowError, TimeoutError):
                async with asyncio.timeout(SECONDS_TO_ANSWER), self._backend.prefect() as api:
                    found = await not_started(api, list(by_run), self._backend.now())
                late = sorted(found.items(), key=lambda item: item[1].since)
                self._found, self._asked = [(by_run[run], each) for run, each in late], now
        return self.shown()
