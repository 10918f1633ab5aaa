"""What is new, told to open pages as it is committed (server-sent events)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from assetflow.api.backend import Backend
from assetflow.errors import LedgerError
from assetflow.ledger.news import Seen
from assetflow.web.state import Trouble, troubles_of

router = APIRouter()

SECONDS = 1.0
BEAT = 20.0
MOST = 200


@dataclass(frozen=True)
class Change:
    """What changed since the last one.

    Attributes:
        kinds: of `assets`, `events`, `decisions`, `troubles`.
        uris, consumers: whose events and decisions; none when there were too many to say.
    """

    kinds: frozenset[str]
    uris: frozenset[str] | None = frozenset()
    consumers: frozenset[str] | None = frozenset()


_ANYTHING = Change(frozenset({"assets", "events", "decisions"}), None, None)


class Live:
    """Looks into the ledger once a second, as long as a page is open, and tells all of them.

    Attributes:
        seen: what has been told; none as long as nobody looks.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._pages: set[asyncio.Queue[Change | None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self.seen: Seen | None = None

    async def changes(self, seen: Seen | None = None) -> AsyncGenerator[Change | None]:
        """Each change; none now and then, to see whether the page is still there.

        Parameters:
            seen: what the page knew when it was made: what came since is told first.
        """
        told = asyncio.Queue[Change | None]()
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
        troubles: list[Trouble] | None = None
        while True:
            # A ledger that cannot be read for a moment is looked at again.
            with suppress(LedgerError):
                now = await run_in_threadpool(troubles_of, self._backend)
                change, self.seen = await run_in_threadpool(self._since, self.seen)
                kinds = change.kinds | ({"troubles"} if troubles not in (None, now) else frozenset[str]())
                troubles = now
                if kinds:
                    for told in self._pages:
                        told.put_nowait(Change(kinds, change.uris, change.consumers))
            await asyncio.sleep(SECONDS)

    def _since(self, seen: Seen | None) -> tuple[Change, Seen]:
        reader = self._backend.ledger.reader
        newest = reader.newest()
        if seen is None or seen == newest:
            return Change(frozenset()), newest
        kinds = {name for name in ("asset", "event", "decision") if getattr(seen, name) != getattr(newest, name)}
        named = frozenset(f"{name}s" for name in kinds)
        if max(newest.event - seen.event, newest.decision - seen.decision) > MOST:
            return Change(named, None, None), newest
        news = reader.news(seen, limit=MOST + 1)
        uris = frozenset(event.uri for event, _ in news.events)
        return Change(named, uris, frozenset(made.consumer_name for made, _ in news.decisions)), newest


@router.get("/live")
async def stream(
    request: Request,
    asset: Annotated[str | None, Query(max_length=1500)] = None,
    consumer: Annotated[str | None, Query(max_length=1000)] = None,
    seen: Annotated[str | None, Query(pattern=r"^\d{1,18}\.\d{1,18}\.\d{1,18}$")] = None,
) -> StreamingResponse:
    """What changes from now on: `assets`, `events`, `decisions`, `troubles`, each as an event of that name.

    Parameters:
        asset: only events of this one, by URI.
        consumer: only decisions of this one.
        seen: the last asset, event and decision that the page has seen, as `3.17.5`.
    """
    live: Live = request.app.state.live

    async def told() -> AsyncGenerator[str]:
        yield "retry: 3000\n\n"
        async for change in live.changes(None if seen is None else Seen(*map(int, seen.split(".")))):
            if change is None:
                yield ": here\n\n"
                continue
            for kind in sorted(change.kinds):
                if _concerns(kind, change, asset, consumer):
                    yield f"event: {kind}\ndata: {json.dumps(kind)}\n\n"

    return StreamingResponse(told(), media_type="text/event-stream", headers={"cache-control": "no-store"})


def _concerns(kind: str, change: Change, asset: str | None, consumer: str | None) -> bool:
    if kind == "events" and asset is not None and change.uris is not None:
        return asset in change.uris
    if kind == "decisions" and consumer is not None and change.consumers is not None:
        return consumer in change.consumers
    return True
