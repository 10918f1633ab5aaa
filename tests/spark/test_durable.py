"""What Spark writes reaches the disk while Spark is still writing."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event

import pytest

from assetflow.spark.layout import flushed_meanwhile

SECONDS = 20.0


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """A file that Spark is writing."""
    part = tmp_path / "data" / "_temporary" / "part-0"
    part.parent.mkdir(parents=True)
    part.touch()
    return part


def test_files_are_flushed_while_they_are_being_written(part: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed, flush = Event(), os.fsync

    def fsync(handle: int) -> None:
        flush(handle)
        if os.path.sameopenfile(handle, written.fileno()):
            flushed.set()

    monkeypatch.setattr(os, "fsync", fsync)
    with part.open("w") as written, flushed_meanwhile(part.parents[2]):
        written.write("rows")
        assert flushed.wait(SECONDS)


def test_a_file_that_goes_away_meanwhile_disturbs_nobody(part: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed, opening = Event(), os.open

    def open_when_it_is_gone(path: Path, *flags: int) -> int:
        part.unlink(missing_ok=True)
        try:
            return opening(path, *flags)
        except FileNotFoundError:
            failed.set()
            raise

    monkeypatch.setattr(os, "open", open_when_it_is_gone)
    with flushed_meanwhile(part.parents[2]):
        assert failed.wait(SECONDS)
