"""What a template imports for its children, and when the template is out of date."""

from __future__ import annotations

import importlib
import os
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

# What each flow run imports before it reaches the user's code.
_NEEDED = (
    "prefect.engine",
    "prefect.flow_engine",
    "prefect.task_engine",
    "prefect.deployments.steps.core",
    "assetflow.authoring.flows",
    "assetflow.authoring.tasks",
    # Reads which events a task's inlets have, and imports SQLAlchemy.
    "assetflow.authoring.past_events.ledger_source",
    "assetflow.prefect_io.credentials",
    "assetflow.spark.task",
    "assetflow.spark.reading",
)
# What many flow runs import, if it is installed.
_USEFUL = (
    "anyio._backends._asyncio",
    "encodings.idna",
    "prefect.utilities.visualization",
    "pydantic.v1",
    "pyspark.sql.connect.session",
    "rich._emoji_codes",
)
# A template grows a little by what it keeps of its runs. Each child would inherit a leak.
_MOST_GROWTH = 64 * 1024**2


def preload(asked: Sequence[str] = ()) -> None:
    """Import what flow runs need.

    Parameters:
        asked: modules that the user wants besides. One that cannot be imported is named on the error output.
    """
    for name in _NEEDED:
        importlib.import_module(name)
    for name in _USEFUL:
        with suppress(ImportError):
            importlib.import_module(name)
    for name in asked:
        try:
            importlib.import_module(name)
        # A module may raise anything while it is imported, and `SystemExit` too.
        except (Exception, SystemExit) as error:
            said = f"{type(error).__name__}: {error}"
            sys.stderr.write(f"preload: {name} cannot be imported, and flow runs do without it ({said})\n")


def is_current() -> Callable[[], bool]:
    """Return a function that tells whether this process still has the installed packages, and has not grown."""
    folders = [Path(place) for place in sys.path if place.endswith(("site-packages", "dist-packages"))]
    before, size = _changed_at(folders), _resident()
    return lambda: _changed_at(folders) == before and _resident() < size + _MOST_GROWTH


def _resident() -> int:
    """Return the bytes of memory that this process has in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _changed_at(folders: list[Path]) -> list[int]:
    found: list[int] = []
    for folder in folders:
        with suppress(OSError):
            found.append(os.stat(folder).st_mtime_ns)  # noqa: PTH116
    return found
