"""Swap two directory entries at once, where the kernel can.

Linux has had `renameat2` with `RENAME_EXCHANGE` since 2014 and most of its file systems support it; POSIX has nothing
like it. Python does not offer it, so this module calls it through the C library.
"""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

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
