"""Look at what may never answer: in threads that nothing waits for, one look at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from threading import Thread
from typing import TypeVar

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
            WatchingFailed: there is no answer in time, or the last look still goes on.
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
