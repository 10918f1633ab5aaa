"""What a template imports for its children, and when that is out of date."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

# What each flow run imports before it reaches the user's code.
_NEEDED = (
    "prefect.engine",
    "prefect.flow_engine",
    "prefect.task_engine",
    "prefect.deployments.steps.core",
    "assetflow",
)
# What many flow runs import, if it is installed.
_USEFUL = ("pyspark.sql.connect.session",)


def preload() -> None:
    """Import what flow runs need."""
    for name in _NEEDED:
        importlib.import_module(name)
    for name in _USEFUL:
        with suppress(ImportError):
            importlib.import_module(name)


def packages_are_unchanged() -> Callable[[], bool]:
    """Return a function that tells whether the installed packages are still those of now."""
    folders = [Path(place) for place in sys.path if place.endswith(("site-packages", "dist-packages"))]
    before = _changed_at(folders)
    return lambda: _changed_at(folders) == before


def _changed_at(folders: list[Path]) -> list[int]:
    found: list[int] = []
    for folder in folders:
        with suppress(OSError):
            found.append(os.stat(folder).st_mtime_ns)  # noqa: PTH116
    return found
