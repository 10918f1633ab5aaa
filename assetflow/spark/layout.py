"""The layout of a published dataset on disk, in which readers never see an incomplete version.

    /lake/orders                      a link to the current version: what readers read
    /lake/orders.versions/
        000007~<schema>-<task run>/   versions, whole from the moment they have this name; the last 3 are kept,
        000008~<schema>-<task run>/   the oldest of them until the next attempt begins
        schemas/<schema>.json         the columns and types of versions (`schemas.py`)
        .lock                         held for the moment of a swap, and while staging is set up or cleaned
        .staging/<attempt>/           a running attempt: `data`, and `lock`, held as long as its process lives

A new version is written in staging, renamed to its final name, and becomes current by one rename of a link. A process
may be killed at any line: until the last rename readers see the old version, afterwards the new one. What a dead
attempt leaves is cleaned by the next publish; the kernel frees the locks of a dead process, so a live one is never
touched.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Event, Thread
from typing import IO, Any
from uuid import uuid4

from assetflow.errors import PublishFailed

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
                    sync(Path(place, name))


def sync_tree(folder: Path) -> None:
    """Flush a folder with everything in it to disk."""
    for place, _, files in os.walk(folder):
        for name in files:
            sync(Path(place, name))
        sync(Path(place))


def write_whole(file: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all."""
    part = file.with_name(f".{uuid4().hex}")
    part.write_text(text)
    sync(part)
    part.replace(file)
    sync(file.parent)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def exchange(first: Path, second: Path) -> bool:
    """Give each of two existing entries the other's name in one atomic step.

    Returns:
        True if it was done; False if the system or the file system cannot, and then nothing has changed.
    """
    call = _renameat2()
    if call is None:
        return False
    return call(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0


@lru_cache(maxsize=1)
def _renameat2() -> Any | None:
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call.restype = ctypes.c_int
    return call


KEPT_VERSIONS = 3
_VERSION = re.compile(r"(?:_version=)?(\d{6,})(?:~(\w+))?-(.+)")
_BEFORE = "before-assetflow"


@dataclass(frozen=True, slots=True)
class Staging:
    """The place of one attempt: unique, and locked as long as the process lives."""

    folder: Path
    lock: IO[bytes]
    task_run: str

    @property
    def data(self) -> Path:
        """The directory for Spark to write, which does not exist yet."""
        return self.folder / "data"

    def bury(self, versions: Iterable[Path]) -> None:
        """Move versions into the staging folder by a rename, so that a half-deleted one never looks like a version."""
        for version in list(versions):
            version.rename(self.folder / version.name)

    def remove_buried(self) -> None:
        """Delete the buried versions, before the new data needs their space."""
        for each in filter(_is_version, list(self.folder.iterdir())):
            shutil.rmtree(each, ignore_errors=True)

    def discard(self) -> None:
        """Delete the rest of the attempt."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.lock.close()


@dataclass(frozen=True, slots=True)
class DatasetLayout:
    """The directory layout of one dataset, or of one partition of it (`partitioned.py`).

    Parameters:
        path: the absolute path of the dataset, the one that readers use.
        store: the folder of the versions; by default beside the path.
        prefix: the prefix of the versions' names.
    """

    path: Path
    store: Path | None = None
    prefix: str = ""

    @property
    def versions_folder(self) -> Path:
        return self.store or self.path.with_name(self.path.name + ".versions")

    def current(self) -> Path | None:
        """Return the directory of the current version, or `None` if the dataset does not exist."""
        return self.path.resolve() if self.path.exists() else None

    def _current_number(self) -> int:
        """Return the number of the current version, or -1 if there is none, or if the dataset has partitions."""
        current = self.current()
        return -1 if current is None else _number(current)

    def versions(self) -> list[Path]:
        """Return the versions on disk, oldest first."""
        if not self.versions_folder.is_dir():
            return []
        return sorted((each for each in self.versions_folder.iterdir() if _is_version(each)), key=_number)

    @contextmanager
    def stage(self, task_run: str, number: int) -> Generator[Staging]:
        """Open a new staging folder, delete those of dead attempts, and delete this one at the end.

        The version that the new one replaces among the last three is deleted now, so that its page cache is free for
        the new data, and the disk needs room for three versions, not for four.

        Parameters:
            task_run: names the version; all versions of one task run count as one of the three that are kept.
            number: the number of the attempt, for people who look at the file system.

        Raises:
            PublishFailed: the dataset's path holds something that is not a dataset.
        """
        self._check_path()
        folder = self.versions_folder / ".staging" / f"{task_run}-{number}-{uuid4().hex[:8]}"
        with self.lock():
            self._adopt()
            self._clean()
            folder.mkdir(parents=True)
            lock = (folder / "lock").open("wb")
            fcntl.flock(lock, fcntl.LOCK_EX)
        staging = Staging(folder, lock, task_run)
        try:
            with self.lock():
                self._prune(staging)
            staging.remove_buried()
            yield staging
        finally:
            staging.discard()

    @contextmanager
    def lock(self) -> Generator[None]:
        """Hold the lock of the dataset, against other publishers in this process and in others."""
        self.versions_folder.mkdir(parents=True, exist_ok=True)
        with (self.versions_folder / ".lock").open("wb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def commit(self, staging: Staging, schema: str = "") -> Path:
        """Make the staged data the current version. Call it inside `lock()`.

        Parameters:
            staging: the attempt, its data complete and flushed.
            schema: the id of its schema.

        Returns:
            The directory of the version.
        """
        self._drop_unpublished(staging)
        version = self._next_version(f"~{schema}-{staging.task_run}" if schema else f"-{staging.task_run}")
        staging.data.rename(version)
        sync(self.versions_folder)
        self.point_to(version, staging)
        self._prune(staging)
        return version

    def point_to(self, version: Path, staging: Staging) -> None:
        """Let readers see `version`: one atomic rename of a link."""
        link = staging.folder / "link"
        link.symlink_to(self._target(version))
        link.replace(self.path)
        sync(self.path.parent)

    def _target(self, version: Path) -> Path:
        # The link is relative, so that a lake can be moved or mounted elsewhere as a whole.
        return Path(os.path.relpath(version, self.path.parent))

    def _next_version(self, rest: str) -> Path:
        versions = self.versions()
        number = _number(versions[-1]) + 1 if versions else 1
        return self.versions_folder / f"{self.prefix}{number:06d}{rest}"

    def _clean(self) -> None:
        folder = self.versions_folder / ".staging"
        for attempt in folder.iterdir() if folder.is_dir() else ():
            if not _is_alive(attempt):
                shutil.rmtree(attempt, ignore_errors=True)

    def _drop_unpublished(self, staging: Staging) -> None:
        """Delete versions newer than the current one: readers never saw them, or a user went back to an older one."""
        current = self._current_number()
        if current >= 0:
            staging.bury(each for each in self.versions() if _number(each) > current)

    def _prune(self, staging: Staging) -> None:
        """Keep the versions of the last task runs, for readers that still use them and for a look back.

        Versions that a retry replaced do not count, or three retries would push out all older ones; they stay until
        another task run publishes, since a reader may still use them. Versions newer than the current one do not count
        before the swap: readers never saw them, or a user went back to an older version and may want them again.
        """
        current = self._current_number()
        seen = [each for each in self.versions()[::-1] if _number(each) <= current]
        others = [each for each in seen if _task_run(each) != staging.task_run]
        newest: dict[str, Path] = {}
        for version in others:
            newest.setdefault(_task_run(version), version)
        keep = list(newest.values())[: KEPT_VERSIONS - 1]
        staging.bury(each for each in others if each not in keep)

    def _check_path(self) -> None:
        if self.path.is_symlink():
            target = self.path.readlink()
            if target.parent != self._target(self.versions_folder):
                raise _not_a_dataset(self.path, f"is a link to {target} that assetflow did not make")
        elif self.path.is_dir():
            strange = [each.name for each in self.path.iterdir() if not _looks_like_data(each)]
            if strange:
                raise _not_a_dataset(self.path, f"is a folder that also holds {sorted(strange)[0]!r}")
        elif self.path.exists():
            raise _not_a_dataset(self.path, "is a file")

    def _adopt(self) -> None:
        """Turn data from before assetflow (a real directory) into the first version.

        On Linux this is one atomic exchange of names. Elsewhere it takes two renames, and the path does not exist for
        some microseconds between them; if the process is killed there, the data is complete in the versions folder, and
        the next publish puts it back.
        """
        versions = self.versions()
        if not self.path.exists() and versions and _task_run(versions[-1]) == _BEFORE:
            self.path.symlink_to(self._target(versions[-1]))
        if self.path.is_symlink() or not self.path.is_dir():
            return
        before = self._next_version(f"-{_BEFORE}")
        before.unlink(missing_ok=True)
        before.symlink_to(self._target(before))
        if not exchange(self.path, before):
            before.unlink()
            self.path.rename(before)
            self.path.symlink_to(self._target(before))


def _is_version(entry: Path) -> bool:
    return _VERSION.fullmatch(entry.name) is not None and entry.is_dir() and not entry.is_symlink()


def _number(version: Path) -> int:
    found = _VERSION.fullmatch(version.name)
    return int(found[1]) if found else -1


def schema_of(version: Path) -> str:
    """Return the id of a version's schema, or an empty text for data that something else wrote."""
    found = _VERSION.fullmatch(version.name)
    return (found[2] or "") if found else ""


def _task_run(version: Path) -> str:
    found = _VERSION.fullmatch(version.name)
    return found[3] if found else version.name


def _is_alive(attempt: Path) -> bool:
    try:
        with (attempt / "lock").open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _looks_like_data(entry: Path) -> bool:
    return entry.name.startswith(("_", ".", "part-")) or entry.suffix == ".parquet" or "=" in entry.name


def _not_a_dataset(path: Path, what: str) -> PublishFailed:
    return PublishFailed(
        f"{path} {what}, so it cannot become a published dataset",
        fix="Move it away, or give the asset a path of its own",
    )
