"""When a template is out of date: the installed packages or the imported files have changed, or it has grown."""

from __future__ import annotations

import os
import resource
import sys
import sysconfig
import time
from contextlib import suppress
from pathlib import Path

# A template grows a little by what it keeps of its runs. Each child would inherit a leak.
_MOST_GROWTH = 64 * 1024**2


class Renewal:
    """The code of this process as it was imported. Made before the imports, so that it knows what changes meanwhile."""

    def __init__(self) -> None:
        self._began = time.time_ns()
        self._site = [place for place in sys.path if place.endswith(("site-packages", "dist-packages"))]
        self._packages = _changed_at(self._site)
        self._files: dict[str, int] = {}
        self._is_outdated = False
        self._size = 0

    def note_imports(self) -> None:
        """Note which files were imported, and how large the process is."""
        files = _imported_files((*self._site, sysconfig.get_path("stdlib")))
        self._files = _changed_at(files)
        self._is_outdated = any(self._began <= each <= time.time_ns() for each in self._files.values())
        self._size = _resident()

    def is_due(self) -> bool:
        """Return True if this process is to be replaced."""
        return (
            self._is_outdated
            or _resident() >= self._size + _MOST_GROWTH
            or _changed_at(self._site) != self._packages
            or _changed_at(list(self._files)) != self._files
        )


def _imported_files(folders: tuple[str, ...]) -> list[str]:
    """Return the files of modules outside of some folders: of editable installs and of PYTHONPATH."""
    found = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    outside = tuple(os.path.join(each, "") for each in folders)  # noqa: PTH118
    return [each for each in found if isinstance(each, str) and not each.startswith(outside)]


def _resident() -> int:
    """Return the bytes of memory that this process has in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _changed_at(places: list[str]) -> dict[str, int]:
    """Return when those of the places that exist were changed, in nanoseconds."""
    found: dict[str, int] = {}
    for place in places:
        with suppress(OSError):
            found[place] = os.stat(place).st_mtime_ns  # noqa: PTH116
    return found
