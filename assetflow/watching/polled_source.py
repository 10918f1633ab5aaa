"""A table, or whatever is looked at from time to time, as a source. Contract 10.4, 10.6."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, cast
from uuid import UUID

from assetflow.core.watchers.intake import Watched, WatcherIntake
from assetflow.core.watchers.table_changes import Found, intake_of


class Polled(Protocol):
    """Something that is looked at.

    Attributes:
        source: what it is, without user and password.
        label: what people call it: "Delta table s3://lake/orders".
    """

    source: str
    label: str

    async def look(self, cursor: object) -> Found:
        """Return what has changed since the cursor.

        Parameters:
            cursor: where the last look ended; `None` for the first look of a new watcher, which finds what is there.
        """
        ...


class PolledSource:
    """The changes of what one watcher looks at.

    Parameters:
        cursor: the cursor that the ledger has; `None` for a new watcher.
    """

    def __init__(self, polled: Polled, watched: Watched, cursor: object, now: Callable[[], datetime]) -> None:
        self._polled = polled
        self._watched = watched
        self._cursor = cursor
        self._now = now
        self._every = cast(Any, watched.trigger).every.total_seconds()
        self._found: Found | None = None
        self._pause = 0.0

    async def first_look(self) -> None:
        """Look for the first time, so that what cannot be looked at is told at once."""
        self._found = await self._look()

    async def step(self) -> WatcherIntake:
        """Look until something has changed, and return what is to be recorded."""
        while True:
            if self._found is None:
                await asyncio.sleep(self._pause)
                self._found = await self._look()
            found = self._found
            self._pause = self._every if found.is_all else 0.0
            if found.changes or found.cursor != self._cursor:
                return intake_of(found, self._watched, self._polled.source, self._polled.label, self._now())
            self._found = None

    async def recorded(self) -> Sequence[UUID]:
        """Take the changes of the last look as known."""
        if self._found is not None:
            self._cursor, self._found = self._found.cursor, None
        return ()

    async def lag(self) -> int | None:
        """Return `None`: what has changed is recorded at the next look."""
        return None

    async def _look(self) -> Found:
        found = await self._polled.look(self._cursor)
        takes_as_known = self._cursor is None and cast(Any, self._watched.trigger).start == "known"
        return replace(found, changes=()) if takes_as_known else found
