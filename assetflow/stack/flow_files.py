"""Import the flows of a project, and read the deployments that it would make."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from prefect import Flow

from assetflow.core.lint import Finding, SeenFlow
from assetflow.core.wire.declarations import FlowDeclaration
from assetflow.core.wire.deployments import Deployed
from assetflow.errors import AssetflowError, AssetflowWarning, InvalidFlow, InvalidProject
from assetflow.prefect_io.deployments import planned
from assetflow.stack.project import Deployment, read_project

# A folder may have scripts that do something when they are imported.
_HAS_FLOWS = re.compile(r"^\s*(from|import) (assetflow|prefect)\b", re.M)
_NOT_OURS = ("site-packages", "node_modules", "__pycache__")


def imported(file: Path) -> ModuleType:
    """Import the module of a file: by its full name, as `python -m` does, if it is below the working directory.

    Files beside it can be imported, too: a worker finds them.

    Raises:
        InvalidFlow: the module cannot be imported.
    """
    here, place = Path.cwd(), file.resolve()
    sys.path += [folder for folder in (str(here), str(place.parent)) if folder not in sys.path]
    try:
        name = _name_of(place, here)
        return importlib.import_module(name) if name else _loaded(place)
    except (Exception, SystemExit) as error:  # A user's module may raise anything.
        raise InvalidFlow(
            f"cannot be imported: {type(error).__name__}: {error}",
            where=str(file),
            fix="Run the file with Python to see the traceback",
        ) from error


def _name_of(place: Path, here: Path) -> str:
    """Return the full name of a file's module; empty if it has none, or another file has it."""
    parts = place.relative_to(here).with_suffix("").parts if place.is_relative_to(here) else ()
    name = ".".join(parts)
    try:
        spec = importlib.util.find_spec(name) if all(part.isidentifier() for part in parts) and parts else None
    except (ImportError, ValueError):
        return ""
    return name if spec is not None and spec.origin == str(place) else ""


def _loaded(place: Path) -> ModuleType:
    # Whoever looks for the module of a class or a flow finds it, and no other module has this name.
    name = f"{place.stem}_{uuid5(NAMESPACE_URL, str(place)).hex}"
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class FlowFiles:
    """The flows of some files, and what was found while they were imported."""

    files: list[Path] = field(default_factory=list[Path])
    flows: list[SeenFlow] = field(default_factory=list[SeenFlow])
    findings: list[Finding] = field(default_factory=list[Finding])


def load(places: Iterable[Path]) -> FlowFiles:
    """Import files, and those files of folders that import assetflow or Prefect; a file that cannot be is a finding.

    Raises:
        InvalidProject: the file or folder does not exist.
    """
    found = FlowFiles(files=list(dict.fromkeys(file for place in places for file in _files(place))))
    for file in found.files:
        with warnings.catch_warnings(record=True) as given, redirect_stdout(sys.stderr):
            warnings.simplefilter("always", AssetflowWarning)
            try:
                found.flows += _flows_in(imported(file), file)
            except AssetflowError as error:
                found.findings.append(_not_imported(file, error))
        ours = (each for each in given if issubclass(each.category, AssetflowWarning))
        found.findings += [
            Finding("AF003", shown_path(Path(each.filename)), each.lineno, str(each.message), "") for each in ours
        ]
    return found


def _files(place: Path) -> Sequence[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise InvalidProject("the file or folder does not exist", where=str(place), fix="Name files or folders")
    inside = (file for file in sorted(place.rglob("*.py")) if not _is_hidden(file.relative_to(place)))
    return [file for file in inside if _HAS_FLOWS.search(file.read_text(encoding="utf-8", errors="replace"))]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part in _NOT_OURS for part in path.parts)


def shown_path(file: Path) -> str:
    """Return a path as people know it: from the working directory, if it is below that."""
    here, place = Path.cwd(), file.resolve()
    return str(place.relative_to(here) if place.is_relative_to(here) else place)


def _not_imported(file: Path, error: AssetflowError) -> Finding:
    """Return the finding for a file: with the innermost line of it in the traceback."""
    cause = error.__cause__
    frames = inspect.getinnerframes(cause.__traceback__) if cause is not None and cause.__traceback__ else []
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == file.resolve()]
    line = cause.lineno if isinstance(cause, SyntaxError) and cause.filename == str(file.resolve()) else None
    message, fix = error.message, error.fix
    if isinstance(cause, AssetflowError):
        message, fix = f"{cause.where}: {cause.message}" if cause.where else cause.message, cause.fix
    return Finding("AF001", shown_path(file), line or (lines[-1] if lines else 1), message, fix)


def _flows_in(module: ModuleType, file: Path) -> Iterator[SeenFlow]:
    """Yield the flows that are defined in a file, each once."""
    from prefect import Flow

    made = [cast("Flow[..., Any]", each) for each in vars(module).values() if isinstance(each, Flow)]
    for each in {id(flow): flow for flow in made}.values():
        function = inspect.unwrap(cast("Callable[..., object]", each.fn))
        if isinstance(function, FunctionType) and Path(function.__code__.co_filename).resolve() == file.resolve():
            line = function.__code__.co_firstlineno
            yield SeenFlow(each.name, shown_path(file), line, declaration_of(each), function)


def declaration_of(flow: Any) -> FlowDeclaration:
    """Return the declaration of a flow; of a plain Prefect flow, what its tasks update and read."""
    # Import only here what imports Prefect.
    from assetflow.authoring.discovery import discover

    declared: object = getattr(flow, "declaration", None)
    if isinstance(declared, FlowDeclaration):
        return declared
    found = discover(flow.fn)
    return FlowDeclaration(produces=found.produces, reads=found.reads)


@dataclass
class Plan:
    """The deployments of a project; one that a deploy would refuse has its problem.

    Attributes:
        problems: what could not be read: the file with the flow, and why.
        is_whole: whether what is missing among them would be removed.
    """

    deployments: list[Deployed] = field(default_factory=list[Deployed])
    problems: dict[str, str] = field(default_factory=dict[str, str])
    is_whole: bool = True


def plan_of(folder: Path, files: Collection[Path] | None = None) -> Plan:
    """Return the deployments of `prefect.yaml`. If one cannot be read, nothing counts as removed.

    Parameters:
        files: only the deployments of flows in these files.

    Raises:
        InvalidProject: `prefect.yaml` does not exist, or is not valid.
    """
    found = Plan()
    for each in read_project(folder, checked=False).deployments:
        if files is not None and (folder / each.file).resolve() not in files:
            continue
        with redirect_stdout(sys.stderr):
            try:
                found.deployments.append(_planned(folder, each))
            except AssetflowError as error:
                found.problems[each.entrypoint] = error.message
                found.is_whole = False
    return found


def _planned(folder: Path, deployment: Deployment) -> Deployed:
    flow: object = getattr(imported(folder / deployment.file), deployment.function, None)
    if not isinstance(flow, Flow):
        raise InvalidFlow("the file has no such flow", where=deployment.file, fix="Name a function with @flow")
    made = planned(cast("Flow[..., Any]", flow), deployment.name, deployment.entrypoint, deployment.given)
    if made.declaration is None and made.problem is None:
        return replace(made, declaration=declaration_of(flow))
    return made
