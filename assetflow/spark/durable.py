"""Flush files to disk, so that they survive a power failure."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from uuid import uuid4

FLUSH_SECONDS = 0.5


@contextmanager
def flushed_meanwhile(folder: Path) -> Generator[None]:
    """Start to flush the files of a folder while they are being written.

    This guarantees nothing, but leaves `sync_tree` little to wait for.
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
                # Spark moves its files while it writes.
                with suppress(OSError):
                    _sync(Path(place, name))


def sync_tree(folder: Path) -> None:
    """Flush a folder with everything in it to disk."""
    for place, _, files in os.walk(folder):
        for name in files:
            _sync(Path(place, name))
        sync_folder(Path(place))


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk."""
    _sync(folder)


def write_whole(file: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all."""
    part = file.with_name(f".{uuid4().hex}")
    part.write_text(text)
    _sync(part)
    part.replace(file)
    sync_folder(file.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
