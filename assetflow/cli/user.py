"""The user who runs the command."""

from __future__ import annotations

import getpass
from contextlib import suppress


def this_user() -> str:
    """Return the name of the user who runs this process, or an empty text if the system does not know it."""
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""
