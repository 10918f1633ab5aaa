"""The files of a project whose change asks for a new deploy."""

from __future__ import annotations

import os
from pathlib import Path

from assetflow.stack.project import FILE

# Folders with somebody else's Python: environments, caches, hidden folders.
_SKIPPED = ("__pycache__", "node_modules", "site-packages")


def source_files(project: Path) -> dict[str, int]:
    """Return when each Python file of a project, and its `prefect.yaml`, was last modified, in nanoseconds."""
    found: dict[str, int] = {}
    for folder, inner, names in os.walk(project):
        inner[:] = [each for each in inner if _is_of_project(Path(folder, each))]
        for name in names:
            if name.endswith(".py") or name == FILE:
                place = Path(folder, name)
                try:
                    found[str(place)] = place.stat().st_mtime_ns
                except OSError:
                    # An editor replaces files; the next look finds the new one.
                    continue
    return found


def _is_of_project(folder: Path) -> bool:
    return (
        not folder.name.startswith(".") and folder.name not in _SKIPPED and not folder.joinpath("pyvenv.cfg").exists()
    )
