"""What is looked at from time to time as a source: a table, a query, files. Contract 10.4, 10.6, 10.7."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol, cast
from uuid import UUID

from assetflow.core.values.triggers import FileTrigger
from assetflow.core.watchers import files as listings
from assetflow.core.watchers.files import Look, SeenFile
from assetflow.core.watchers.intake import Watched, WatcherIntake
from assetflow.core.watchers.table_changes import Found, intake_of
from assetflow.errors import WatchingFailed
from assetflow.watching.kinds.files import FsspecFiles
from assetflow.watching.looks import Listener, Looks


class Polled(Protocol):
    """Something that is looked at.

    Attributes:
        source: what it is, without user and password.
        label: what people call it: "Delta table s3://lake/orders".
    """

    source: str
    label: str

    def look(self, cursor: Any) -> Found:
        """Return what has changed since the cursor. It is called in a thread of its own.

        Parameters:
            cursor: where the last look ended; `None` for the first look of a new watcher, which finds what is there.
        """
        ...

    def cancel(self) -> None:
        """Let a look end that does not answer, if the source can do that."""


class PolledSource:
    """The changes of what one watcher looks at.

    Parameters:
        cursor: the cursor that the ledger has; `None` for a new watcher.
    """

    def __init__(
        self, polled: Polled, looks: Looks, watched: Watched, cursor: object, now: Callable[[], datetime]
    ) -> None:
        self._polled = polled
        self._looks = looks
        self._watched = watched
        self._cursor = cursor
        self._now = now
        self._every = cast(Any, watched.trigger).every.total_seconds()
        self._found: Found | None = None
        self._pause = 0.0

    async def first_look(self) -> None:
        """Look for the first time, so that an error shows at once."""
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
        found = await self._looks.take(partial(self._polled.look, self._cursor), self._polled.cancel)
        takes_as_known = self._cursor is None and cast(Any, self._watched.trigger).start == "known"
        return replace(found, changes=()) if takes_as_known else found


# For how long a file on a disk may not change before it counts.
SECONDS_TO_SETTLE = 1.0
AT_ONCE = 1_000


class FileSource:
    """The files of one watcher.

    Parameters:
        known: the cursor that the ledger has.
        listener: listens to the folders that are listed.
    """

    def __init__(
        self,
        files: FsspecFiles,
        looks: Looks,
        watched: Watched,
        known: Mapping[str, object],
        now: Callable[[], datetime],
        listener: Listener,
    ) -> None:
        self._files = files
        self._looks = looks
        self._watched = watched
        self._known = {path: SeenFile.from_json(data) for path, data in known.items()}
        self._now = now
        self._listener = listener
        self._unsettled: Mapping[str, SeenFile] = {}
        self._look = Look({}, (), {})
        self._first: Look | None = None
        self._pause = 0.0

    async def first_look(self) -> None:
        """Look for the first time, so that an error shows at once."""
        self._first = await self._find()

    async def step(self) -> WatcherIntake:
        """Look until something has changed, and return what is to be recorded."""
        while True:
            if self._pause:
                await self._listener.wait(self._pause)
            found, self._first = self._first or await self._find(), None
            self._pause = self._seconds(found)
            if found.changed or found.gone or self._takes_all:
                self._look = found
                return listings.intake_of(found, self._watched, self._files.source, self._now())

    async def recorded(self) -> Sequence[UUID]:
        """Take the files of the last look as known."""
        self._known.update(self._look.changed)
        for path in self._look.gone:
            self._known.pop(path, None)
        self._watched = replace(self._watched, begun=True)
        return ()

    async def lag(self) -> int | None:
        """Return how many files have changed lately, so that they do not count yet."""
        return len(self._unsettled)

    async def _find(self) -> Look:
        is_whole = self._files.is_store or self._takes_all
        found = listings.look(self._known, self._unsettled, await self._list(), is_store=is_whole)
        self._listener.listen(self._files.folders)
        self._unsettled = found.unsettled
        if self._takes_all or len(found.changed) <= AT_ONCE:
            return found
        # The next look finds the others.
        self._unsettled = {**found.unsettled, **found.changed}
        return replace(found, changed={path: found.changed[path] for path in sorted(found.changed)[:AT_ONCE]})

    async def _list(self) -> Mapping[str, SeenFile]:
        try:
            return await self._looks.take(self._files.list)
        except FileNotFoundError as error:
            if self._takes_all:
                # The next look, at once, fails too, and says so; when it is there, all in it is new.
                return {}
            raise WatchingFailed(
                f"nothing is seen, because there is no folder or bucket {error.filename}",
                where=self._watched.trigger.describe(),
                fix="Make it, or correct the path in the trigger",
            ) from error

    def _seconds(self, found: Look) -> float:
        every = cast(FileTrigger, self._watched.trigger).every.total_seconds()
        if len(found.changed) == AT_ONCE or (self._takes_all and not found.changed):
            return 0.0
        return min(every, SECONDS_TO_SETTLE) if self._unsettled else every

    @property
    def _takes_all(self) -> bool:
        """True if all files that are there become known now."""
        return not self._watched.begun and cast(FileTrigger, self._watched.trigger).start == "known"
