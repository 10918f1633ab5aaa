"""What was written survives a power failure."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

FLUSH_SECONDS = 0.5


@contextmanager
def flushed_meanwhile(folder: Path) -> Generator[None]:
    """Have the disk take in the files of a folder while they are being written.

    It makes nothing certain, but `sync_tree` finds little left to wait for.
    """
    done = Event()
    flushing = Thread(target=_flush, args=(folder, done), name="assetflow-flush", daemon=True)
    flushing.start()
    try:
        yield
    finally:
        done.set()
        flushing.join()


def _flush(folder: Path, done: Event) -> None:
    while not done.wait(FLUSH_SECONDS):
        for place, _, files in os.walk(folder):
            for name in files:
                # Spark moves its files while it works.
                with suppress(OSError):
                    _sync(Path(place, name))


def sync_tree(folder: Path) -> None:
    """Have a folder with all that is in it survive a power failure."""
    for place, _, files in os.walk(folder):
        for name in files:
            _sync(Path(place, name))
        sync_folder(Path(place))


def sync_folder(folder: Path) -> None:
    """Have the names in a folder survive a power failure."""
    _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
