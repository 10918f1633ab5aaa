"""Tell open pages what has changed, as it is committed, by server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import EventSourceResponse, format_sse_event

from assetflow.api.requests import Backend
from assetflow.api.security import Access
from assetflow.errors import LedgerError
from assetflow.ledger.read.events import Position
from assetflow.web.troubles import ShownTrouble, troubles_of

router = APIRouter()

SECONDS = 1.0
BEAT = 20.0
MOST = 200


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
        if max(newest.event - seen.event, newest.decision - seen.decision) > MOST:
            return LedgerChange(named, None, None), newest
        found = reader.feed.after(seen, limit=MOST + 1)
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
