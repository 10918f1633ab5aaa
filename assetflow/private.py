"""Files and folders that only their owner may read: the ledger holds what users' data and secrets are made of."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_FOLDER = 0o700
_FILE = 0o600


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner can enter. One that is there stays as its owner wants it.

    Raises:
        OSError: The folder cannot be made.
    """
    folder.mkdir(mode=_FOLDER, parents=True, exist_ok=True)


def make_private(file: Path) -> None:
    """Make an empty file that only its owner can read, or take the others' rights to one that is there.

    A file of another user stays as it is. The file is never opened: that would undo SQLite's locks in this process.

    Raises:
        OSError: The file cannot be made.
    """
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE))
    except FileExistsError:
        keep_private(file)


def keep_private(file: Path) -> None:
    """Take the others' rights to a file, if it is there and ours."""
    with suppress(OSError):
        found = file.stat()
        if found.st_uid == os.geteuid() and found.st_mode & 0o077:
            file.chmod(found.st_mode & 0o700)
