"""Add rows to a dataset so that a retry does not add them twice.

An append makes a new version too: the files of the current one (as hard links, without copying) and the new ones. Every
published file has the task run and the attempt in its name. An attempt that appends leaves out the files of earlier
attempts of the same task run, even if others have appended in between.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from prefect.context import TaskRunContext

from assetflow.authoring.recording import current_recording


@dataclass(frozen=True, slots=True)
class AttemptId:
    """One attempt of a task run.

    Parameters:
        task_run: the id of the task run; outside of a task run a new id, so that nothing counts as a retry.
        number: the number of the attempt.
    """

    task_run: str
    number: int


def current_attempt() -> AttemptId:
    """Return the current attempt: of the task that records updates, else of Prefect's task run.

    A plain task inside a task that records updates counts as a part of it: on a retry it would get a new task run, and
    its data would be appended twice.
    """
    recording = current_recording()
    if recording is not None and recording.task_run_id:
        return AttemptId(recording.task_run_id, recording.attempt)
    context = TaskRunContext.get()
    if context is not None:
        return AttemptId(str(context.task_run.id), context.task_run.run_count)
    return AttemptId(str(uuid4()), 1)


def mark_files(folder: Path, attempt: AttemptId) -> None:
    """Write the attempt into the names of the data files in `folder`, and of the checksums beside them."""
    for file in list(_data_files(folder)):
        hidden = "." if file.name.startswith(".") else ""
        file.rename(file.with_name(f"{hidden}{_mark(attempt)}{file.name[len(hidden) :]}"))


def carry_over(current: Path, folder: Path, attempt: AttemptId) -> None:
    """Link the files of the current version into the new one, except those of the task run's earlier attempts.

    Parameters:
        current: the directory of the current version.
        folder: the directory of the new version, in which the new files are marked.
        attempt: the attempt that appends.
    """
    for file in _data_files(current):
        name = file.name.removeprefix(".")
        if name.startswith(_run_mark(attempt)) and not name.startswith(_mark(attempt)):
            continue
        target = folder / file.relative_to(current)
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(file, target)


def _mark(attempt: AttemptId) -> str:
    return f"{_run_mark(attempt)}{attempt.number}~"


def _run_mark(attempt: AttemptId) -> str:
    return f"{attempt.task_run}~"


def _data_files(folder: Path) -> Iterator[Path]:
    """Yield the data files and the checksums beside them, but not Spark's markers such as `_SUCCESS`."""
    for place, _, names in os.walk(folder):
        for name in names:
            if not name.removeprefix(".").startswith("_"):
                yield Path(place, name)


def _link(file: Path, target: Path) -> None:
    try:
        target.hardlink_to(file)
    except PermissionError:  # a file system without hard links (vfat, some network mounts)
        shutil.copy2(file, target)
