"""Add rows to a dataset so that a retry does not add them twice.

An append makes a new version too: the files of the current one (as hard links, without copying) and the new ones. Every
published file has the task run and the attempt in its name. An attempt that appends leaves out the files of earlier
attempts of the same task run, even if others have appended in between.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from assetflow.spark.attempt import AttemptId


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
