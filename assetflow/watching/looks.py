"""Look at what may never answer, in threads that nothing waits for, and listen to folders."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Set
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar, cast

from assetflow.errors import WatchingFailed

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

    async def close(self) -> None:
        """Stop listening. A thread that is held up stays."""
        self._stop.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_TO_END):
                while self._thread is not None and self._thread.is_alive():  # noqa: ASYNC110 (a thread tells nothing)
                    await asyncio.sleep(MILLISECONDS_BETWEEN_LOOKS / 10_000)


@asynccontextmanager
async def listening() -> AsyncGenerator[Listener]:
    """Yield a listener, which stops with the block."""
    listener = Listener()
    try:
        yield listener
    finally:
        await listener.close()


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
