"""Read the schedules of the flows in a user's module."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.wire.declarations import FlowDeclaration
from assetflow.errors import InvalidFlow


def schedules_of(file: Path) -> dict[str, ConsumerOptions]:
    """Return the name and options of each flow in the module that has a schedule, in the module's order.

    Raises:
        InvalidFlow: the module cannot be imported, or none of its flows has a schedule.
    """
    module = _imported(file)
    found = {
        name: declaration.options
        for name, declaration in _declarations(module)
        if declaration.options.schedule != Schedule()
    }
    if not found:
        raise InvalidFlow("no flow here has a schedule", where=str(file), fix="Write @flow(schedule=...) over one")
    return found


def _declarations(module: ModuleType) -> Iterator[tuple[str, FlowDeclaration]]:
    for name, value in vars(module).items():
        declaration = getattr(value, "declaration", None)
        if isinstance(declaration, FlowDeclaration):
            yield str(getattr(value, "name", name)), declaration


def _imported(file: Path) -> ModuleType:
    """Import the module of a file: by its full name, as `python -m` does, if it is below the working directory."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        parts = file.resolve().relative_to(here).with_suffix("").parts
    except ValueError:
        parts = ()
    try:
        if parts and all(part.isidentifier() for part in parts) and file.is_file():
            return importlib.import_module(".".join(parts))
        return _loaded(file)
    except Exception as error:  # A user's module may raise anything.
        raise InvalidFlow(
            f"cannot be imported: {type(error).__name__}: {error}",
            where=str(file),
            fix="Run the file with Python to see the traceback",
        ) from error


def _loaded(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
