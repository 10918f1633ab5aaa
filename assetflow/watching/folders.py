"""Listen to folders of this machine, all of them in one thread. Looking from time to time remains as the net."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

logger = logging.getLogger("assetflow.watching")

MILLISECONDS_BETWEEN_LOOKS = 200
SECONDS_TO_TRY_AGAIN = 15.0


class Folders:
    """Sets an event when something changes in a folder."""

    def __init__(self) -> None:
        self._events: dict[asyncio.Event, Path] = {}
        self._changed = asyncio.Event()

    @contextmanager
    def listening(self, folder: Path | None) -> Generator[asyncio.Event]:
        """Yield an event that is set when something changes in the folder, as long as the block runs."""
        event = asyncio.Event()
        if folder is not None:
            self._events[event] = folder
            self._changed.set()
        try:
            yield event
        finally:
            if self._events.pop(event, None) is not None:
                self._changed.set()

    async def run(self) -> None:
        """Listen until cancelled. Without watchfiles, or if it fails, files are found by looking alone."""
        try:
            import watchfiles
        except ImportError:
            logger.info('watchfiles is not installed (pip install "assetflow[files]"): files are found by looking')
            return
        while True:
            self._changed.clear()
            folders = {folder for folder in self._events.values() if folder.is_dir()}
            if not folders:
                await self._changed.wait()
                continue
            try:
                async for changes in cast(Any, watchfiles).awatch(
                    *folders, watch_filter=None, stop_event=self._changed, debounce=MILLISECONDS_BETWEEN_LOOKS
                ):
                    self._tell([Path(path) for _, path in changes])
            except OSError as error:
                # For instance, the machine allows no more of them.
                logger.warning("folders cannot be listened to, files are found by looking: %s", error)
                await asyncio.sleep(SECONDS_TO_TRY_AGAIN)

    def _tell(self, changed: list[Path]) -> None:
        for event, folder in self._events.items():
            if any(path == folder or folder in path.parents for path in changed):
                event.set()
