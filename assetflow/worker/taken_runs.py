"""The flow runs that the workers of this machine have taken, as files that outlive them.

Prefect hands a run to one worker, and to no other if that one dies. So a worker notes a run before it takes it, in a
folder of its own, and the run's processes hold a lock on the note. A lock ends with its processes: a note that
nobody holds, in the folder of a worker that is dead, is that of an abandoned run. The note of an ordinary process also
tells which one it is, because not each holds the lock. Whether the dead worker had taken the run says its state in
Prefect: the worker signs the PENDING states that it proposes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from uuid import UUID, uuid4

from assetflow.worker.client import BEGAN, mark_of


@dataclass(frozen=True)
class AbandonedRun:
    """A flow run that a dead worker has noted. Another worker may have taken it.

    Attributes:
        noted: when, in seconds since 1970.
        began: it had a process.
        is_ordinary: that process may have done anything before the flow run began, so it is not started again.
    """

    note: Path
    noted: float
    began: bool
    is_ordinary: bool = False

    @property
    def id(self) -> UUID:
        """The id of the flow run."""
        return UUID(self.note.name)

    def is_signed(self, message: str | None) -> bool:
        """Return True if a state with this message was proposed by the worker that died."""
        return self.note.parent.name in (message or "")

    def forget(self) -> None:
        """Remove the note: the run is seen to."""
        self.note.unlink(missing_ok=True)


class TakenRuns:
    """A context in which a worker notes its runs, and sees the notes of dead workers.

    Parameters:
        folder: the place for all workers of one pool on this machine.
        worker: the name of this one.

    Attributes:
        signature: the message of the states that this worker proposes when it takes a run. No other worker has it.
    """

    def __init__(self, folder: Path, worker: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._own = folder / uuid4().hex
        self.signature = f"Taken by worker {worker} ({self._own.name})"
        # Locked before the folder is there, so nobody takes this worker for dead.
        self._lock = _lock_of(self._own).open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._own.mkdir()

    def note(self, run: UUID) -> Path:
        """Note a run that is about to be taken, and return the note."""
        note = self._own / str(run)
        note.touch()
        return note

    def note_process(self, run: UUID, process: int) -> None:
        """Note the process of a run, which does not hold the note."""
        self.note(run).write_bytes(BEGAN + b" " + mark_of(process))

    def forget(self, run: UUID) -> None:
        """Remove the note of a run that has ended."""
        (self._own / str(run)).unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the remaining notes to the other workers of the pool."""
        _remove(self._own)
        self._lock.close()

    def abandoned(self) -> Iterator[Path]:
        """Yield the notes of dead workers, and remove their folders when there are none left."""
        for folder in [each for each in self._folder.iterdir() if each.is_dir()]:
            with suppress(FileNotFoundError), _lock_of(folder).open() as lock, suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                yield from list(folder.iterdir())
                _remove(folder)


@contextmanager
def held(note: Path) -> Generator[AbandonedRun | None]:
    """Hold the note of an abandoned run; `None` if the run has a process, or another process holds the note."""
    with note.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        found = os.fstat(file.fileno())
        began, *process = file.read().split()[:3] or [b""]
        if not found.st_nlink or (process and mark_of(int(process[0])) == b" ".join(process)):
            yield None
        else:
            yield AbandonedRun(note, found.st_mtime, began == BEGAN, bool(process))


def _lock_of(folder: Path) -> Path:
    return folder.with_suffix(".worker")


def _remove(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
        _lock_of(folder).unlink()
