"""Look at what may never answer, in threads that nothing waits for, and listen to folders."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, Protocol, TypeVar, cast
from uuid import UUID

from assetflow.core.values.triggers import FileTrigger
from assetflow.core.watchers import files as listings
from assetflow.core.watchers.files import Look, SeenFile
from assetflow.core.watchers.intake import Watched, WatcherIntake
from assetflow.core.watchers.table_changes import Found, intake_of
from assetflow.errors import WatchingFailed
from assetflow.watching.kinds.files import FsspecFiles
from assetflow.watching.watching import WatchedSource

SECONDS_TO_ANSWER = 120.0

Answer = TypeVar("Answer")


class Looks:
    """The looks at one source, however often it is opened again.

    A thread cannot be stopped. One that does not come back keeps its source from being looked at again, and the others
    from nothing: it ends with the process.
    """

    def __init__(self) -> None:
        self._since: datetime | None = None

    async def take(self, look: Callable[[], Answer], cancel: Callable[[], object] | None = None) -> Answer:
        """Return what a look returns.

        Parameters:
            cancel: makes the look end. It is called when the look has not answered in time, or is not wanted any more.

        Raises:
            WatchingFailed: there is no answer in time, or the last look has not answered yet.
        """
        if self._since is not None:
            raise WatchingFailed(
                f"the look that began at {self._since:%H:%M:%S} UTC still waits for an answer, and no other one begins",
                fix="Free what hangs, or start `assetflow watcher` anew",
            )
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        _begin(partial(self._look, look, answer))
        self._since = datetime.now(UTC)
        try:
            await asyncio.wait({answer}, timeout=SECONDS_TO_ANSWER)
        finally:
            if not answer.done():
                answer.cancel()
                if cancel is not None:
                    _begin(cancel)
        if answer.cancelled():
            raise WatchingFailed(f"there was no answer for {SECONDS_TO_ANSWER:.0f} s")
        return answer.result()

    def _look(self, look: Callable[[], Answer], answer: asyncio.Future[Answer]) -> None:
        try:
            tell = partial(answer.set_result, look())
        except BaseException as error:
            tell = partial(answer.set_exception, error)
        # The loop may have ended meanwhile.
        with suppress(RuntimeError):
            answer.get_loop().call_soon_threadsafe(self._end, answer, tell)

    def _end(self, answer: asyncio.Future[Answer], tell: Callable[[], None]) -> None:
        self._since = None
        if not answer.done():
            tell()


def _begin(run: Callable[[], object]) -> None:
    Thread(target=run, name="watching", daemon=True).start()


logger = logging.getLogger("assetflow.watching")

MILLISECONDS_BETWEEN_LOOKS = 200
# A folder that was removed and created again, or a link to another one, is noticed within this time.
MILLISECONDS_BETWEEN_CHECKS = 5_000
SECONDS_TO_TRY_AGAIN = 15.0
SECONDS_TO_END = 1.0


class Listener:
    """Tells when something changes in the folders of one watcher.

    It has a thread of its own, which a file system that does not answer may hold up, and listens to each folder alone:
    watchfiles would follow links to wherever they lead.
    """

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._folders: Set[Path] = frozenset()
        self._stop = Event()
        self._thread: Thread | None = None

    async def wait(self, seconds: float) -> None:
        """Wait for so many seconds, or until something changes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()

    def listen(self, folders: Set[Path]) -> None:
        """Listen to these folders from now on."""
        if folders == self._folders:
            return
        self._stop.set()
        self._folders, self._stop = folders, Event()
        loop = asyncio.get_running_loop()

        def tell() -> None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._changed.set)

        self._thread = Thread(target=_listen, args=(folders, self._stop, tell), name="listening", daemon=True)
        self._thread.start()

    async def aclose(self) -> None:
        """Stop listening. A thread that is held up stays."""
        self._stop.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_TO_END):
                while self._thread is not None and self._thread.is_alive():  # noqa: ASYNC110 (a thread tells nothing)
                    await asyncio.sleep(MILLISECONDS_BETWEEN_LOOKS / 10_000)


def _listen(folders: Set[Path], stop: Event, tell: Callable[[], None]) -> None:
    try:
        from watchfiles import watch
    except ImportError:
        logger.info('watchfiles is not installed (pip install "assetflow[files]"): files are found by looking')
        return
    while folders and not stop.is_set():
        try:
            if found := _found(folders):
                _until_another(cast(Any, watch), found, stop, tell)
                continue
        except (OSError, RuntimeError) as error:
            # For instance, the machine allows no more of them.
            logger.warning("folders cannot be listened to, files are found by looking: %s", error)
        stop.wait(SECONDS_TO_TRY_AGAIN)


def _until_another(watch: Any, found: Mapping[Path, object], stop: Event, tell: Callable[[], None]) -> None:
    """Listen until a folder is another one than before."""
    has_begun = False
    for changes in watch(
        *found,
        watch_filter=None,
        recursive=False,
        stop_event=stop,
        debounce=MILLISECONDS_BETWEEN_LOOKS,
        step=MILLISECONDS_BETWEEN_LOOKS // 2,
        rust_timeout=MILLISECONDS_BETWEEN_CHECKS,
        yield_on_timeout=True,
    ):
        # What changed between the last look and the first moment of listening counts too.
        if changes or not has_begun:
            tell()
        has_begun = True
        if _found(found) != found:
            tell()
            return


def _found(folders: Set[Path] | Mapping[Path, object]) -> dict[Path, object]:
    """Return the folders that are there, with what tells each from another one of its name."""
    found: dict[Path, object] = {}
    for folder in folders:
        with suppress(FileNotFoundError, NotADirectoryError):
            facts = folder.stat()
            found[folder] = facts.st_dev, facts.st_ino
    return found


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


class PolledSource(WatchedSource):
    """The changes of what one watcher looks at. They are recorded at the next look: it does not tell how much waits.

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
