"""Whether a template may fork: what does not survive a fork, and when a template is out of date.

Other threads, connections, processes, a running event loop and held locks do not survive. A template is out of date if
the installed packages or the imported files have changed, or when it has grown.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
import sysconfig
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import cast

# Native threads whose libraries know about forks: Arrow's allocator. OpenBLAS ends its threads before each fork.
_NATIVE_THREADS = frozenset({"jemalloc_bg_thd"})
_STANDARD_STREAMS = 3
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


def why_not_fork(own: Collection[int] = ()) -> str | None:
    """Return what this process has that would be broken in a child, or `None` if it may fork.

    Parameters:
        own: the descriptors of sockets that a child closes.
    """
    return _python_thread() or _native_thread() or _event_loop() or _connection(own)


def why_not_serve() -> str | None:
    """Return why this process may not become a template, or `None` if it may. It looks deeper than `why_not_fork`."""
    found = _python_thread()
    if found is None:
        _end_threads_of_libraries()
        found = why_not_fork() or _process() or _held_lock()
    return found


def _python_thread() -> str | None:
    # This counts the threads of `_thread`, too.
    if len(sys._current_frames()) == 1:  # pyright: ignore[reportPrivateUsage]
        return None
    names = [each.name for each in threading.enumerate() if each is not threading.main_thread()]
    return f"has started a thread ({', '.join(names) or '_thread'})"


def _native_thread() -> str | None:
    tasks = Path("/proc/self/task")
    others = [each for each in tasks.iterdir() if each.name != str(os.getpid())]
    for each in others:
        name = (each / "comm").read_text().strip()
        if name not in _NATIVE_THREADS:
            return f"has started a native thread ({name})"
    return None


def _end_threads_of_libraries() -> None:
    """Fork once, so that libraries which know about forks end their threads."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _event_loop() -> str | None:
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        return "runs an event loop"
    return None


def _connection(own: Collection[int]) -> str | None:
    """Find an open socket: of an HTTP client, a gRPC channel, a Java gateway, or an event loop that is not closed."""
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            number = int(each.name)
            if number >= _STANDARD_STREAMS and number not in own and os.readlink(each).startswith("socket:"):  # noqa: PTH115
                return "has opened a connection or an event loop"
    return None


def _process() -> str | None:
    """Find a process that an import has started, such as a Java gateway. Some kernels do not tell."""
    with suppress(OSError):
        if Path(f"/proc/self/task/{os.getpid()}/children").read_text().strip():
            return "has started a process"
    return None


def _held_lock() -> str | None:
    """Find a lock that an import has acquired and not released, among all that objects refer to."""
    # Until Python 3.13, a thread holds a lock for as long as it runs.
    own = getattr(threading.main_thread(), "_tstate_lock", None)
    for holder in gc.get_objects():
        for each in gc.get_referents(holder):
            # Before Python 3.14, an RLock says so in its text only.
            if isinstance(each, _LOCKS) and each is not own and repr(each).startswith("<locked"):
                return f"holds a lock ({_name(holder, each)})"
    return None


def _name(holder: object, lock: object) -> str:
    """Return the name of the variable that refers to a lock, or the class of the object that does."""
    if isinstance(holder, dict):
        names = (str(name) for name, value in cast("dict[object, object]", holder).items() if value is lock)
        return next(names, "dict")
    return type(holder).__name__


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
