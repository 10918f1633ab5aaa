"""Import the flows of a project, and read the deployments that it would make."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

import yaml
from prefect import Flow

from assetflow.authoring.discovery import discover
from assetflow.core.lint import Finding, SeenFlow
from assetflow.core.wire.declarations import FlowDeclaration
from assetflow.core.wire.deployments import Deployed
from assetflow.errors import AssetflowError, AssetflowWarning, InvalidFlow, InvalidProject
from assetflow.prefect_io.deployments import planned
from assetflow.prefect_io.internals import needed_for

FILE = "prefect.yaml"
# The work pool of a deployment that does not name one.
DEFAULT_POOL = "assetflow"
EXAMPLE = "deployments: [{name: shop, entrypoint: 'flows.py:report'}]"
# Files that hide a package: Python imports a file with such a name in the project instead of the package.
_HIDING = ("assetflow.py", "prefect.py", "pyspark.py")

Json = dict[str, Any]


@dataclass(frozen=True)
class Deployment:
    """A deployment of `prefect.yaml`.

    Attributes:
        entrypoint: `flows.py:report`, or `package.module.report`.
        pool: the work pool whose worker runs it.
        given: all that `prefect.yaml` says of it.
    """

    name: str
    entrypoint: str
    pool: str
    given: Mapping[str, object] = field(default_factory=dict[str, object], compare=False)

    @property
    def file(self) -> str:
        """The path of the file that its flow is in."""
        named = self.entrypoint.rpartition(":" if ":" in self.entrypoint else ".")[0]
        return named if named.endswith(".py") else f"{named.replace('.', '/')}.py"

    @property
    def function(self) -> str:
        return self.entrypoint.replace(":", ".").rpartition(".")[2]


@dataclass(frozen=True)
class Project:
    """A folder with `prefect.yaml`, checked without running any of its code."""

    folder: Path
    deployments: tuple[Deployment, ...]
    document: Json

    @property
    def pools(self) -> list[str]:
        """The work pools of its deployments, each once, in order."""
        return list(dict.fromkeys(each.pool for each in self.deployments))

    def write_completed(self, place: Path) -> None:
        """Write a `prefect.yaml` in which every deployment has a work pool, which `prefect deploy --all` needs."""
        completed = deepcopy(self.document)
        for each in completed["deployments"]:
            each["work_pool"] = {"name": DEFAULT_POOL} | _without_none(each.get("work_pool") or {})
        place.write_text(yaml.safe_dump(completed, sort_keys=False, allow_unicode=True), encoding="utf-8")


def read_project(folder: Path, *, checked: bool = True) -> Project:
    """Return the project in a folder.

    Parameters:
        checked: whether the files that it names have to be there, and to be Python.

    Raises:
        InvalidProject: `prefect.yaml` cannot be read, a deployment is incomplete, or a file that it names does not
            exist or is not Python.
    """
    for name in _HIDING:
        if (folder / name).exists():
            raise InvalidProject(
                f"{name} hides the package {Path(name).stem}: Python imports the file in its place",
                where=str(folder),
                fix=f"Rename {name}",
            )
    document = read_document(folder / FILE)
    given: object = document.get("deployments")
    if not given:
        raise InvalidProject(
            "there are no deployments in it", where=FILE, fix=f"Name your flows in it, as in: {EXAMPLE}"
        )
    if not isinstance(given, list):
        raise InvalidProject("`deployments` is not a list", where=FILE, fix=f"Write it as in: {EXAMPLE}")
    listed = cast("list[object]", given)
    deployments = tuple(_deployment(each, number) for number, each in enumerate(listed, 1))
    for each in deployments if checked else ():
        _check_source(folder, each)
    return Project(folder, deployments, document)


def read_document(place: Path) -> Json:
    """Return what a `prefect.yaml` says.

    Raises:
        InvalidProject: it cannot be read, or is not a mapping in YAML.
    """
    try:
        found = cast(object, yaml.safe_load(place.read_text(encoding="utf-8")))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{FILE}, line {mark.line + 1}, column {mark.column + 1}" if mark else FILE
        raise InvalidProject(
            f"not valid YAML: {error.problem}", where=where, fix="Correct this line, or the one before it"
        ) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        said = str(error).partition("\n")[0]
        raise InvalidProject(f"cannot be read: {said}", where=FILE, fix="Write it as YAML, in UTF-8") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InvalidProject("not a mapping", where=FILE, fix=f"Write it as in: {EXAMPLE}")
    return cast(Json, found)


def _deployment(given: object, number: int) -> Deployment:
    where = f"{FILE}, deployment {number}"
    if not isinstance(given, dict):
        raise InvalidProject("not a mapping", where=where, fix=f"Write it as in: {EXAMPLE}")
    said = cast(Json, given)
    values = _filled_in(said)
    name = _text(values, "name", where)
    where = f"{where} ({name})"
    pool: object = values.get("work_pool") or {}
    if not isinstance(pool, dict):
        raise InvalidProject("`work_pool` is not a mapping", where=where, fix="Write `work_pool: {name: laptop}`")
    named = _text({"name": DEFAULT_POOL} | _without_none(cast(Json, pool)), "name", f"{where}, work_pool")
    return Deployment(name, _text(values, "entrypoint", where), named, said)


def _filled_in(given: Json) -> Json:
    """Return name, entrypoint and work pool, with `{{ $VARIABLE }}` replaced from the environment as Prefect does."""
    wanted = {name: given.get(name) for name in ("name", "entrypoint", "work_pool")}
    with needed_for("A variable in prefect.yaml"):
        from prefect.utilities.templating import apply_values
    return cast(Json, apply_values(wanted, dict(os.environ), remove_notset=False, warn_on_notset=False))


def _text(values: Mapping[str, object], name: str, where: str) -> str:
    value = values.get(name)
    if value is None:
        raise InvalidProject(f"{name} is missing", where=where, fix=f"Write it as in: {EXAMPLE}")
    if not isinstance(value, str) or not value:
        raise InvalidProject(f"{name} is {value!r}, which is not text", where=where, fix="Put it in quotes")
    return value


def _without_none(values: Json) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _check_source(folder: Path, deployment: Deployment) -> None:
    where = f"{FILE}, deployment {deployment.name}"
    if ".py:" not in deployment.entrypoint:
        if "." not in deployment.entrypoint.replace(":", ".") or deployment.entrypoint.endswith(".py"):
            raise InvalidProject(
                f"the entrypoint {deployment.entrypoint!r} does not name a flow",
                where=where,
                fix="Write file.py:function, such as flows.py:report",
            )
        return
    named = deployment.file
    place = folder / named
    if not place.is_file():
        raise InvalidProject(
            f"there is no file {named}", where=where, fix="Give its path from the folder of prefect.yaml"
        )
    try:
        compile(place.read_bytes(), named, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f": {error.text.strip()}" if error.text else ""
        raise InvalidProject(
            f"not valid Python: {error.msg}{line}", where=f"{named}, line {error.lineno}", fix="Correct this line"
        ) from error
    except ValueError as error:
        raise InvalidProject(f"not valid Python: {error}", where=named, fix="Save it as text, in UTF-8") from error


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


# A folder may have scripts that do something when they are imported.
_HAS_FLOWS = re.compile(r"^\s*(from|import) (assetflow|prefect)\b", re.M)


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
    inside = (
        file
        for file in sorted(place.rglob("*.py"))
        if not any(part.startswith(".") or part in _SKIPPED for part in file.relative_to(place).parts)
    )
    return [file for file in inside if _HAS_FLOWS.search(file.read_text(encoding="utf-8", errors="replace"))]


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
    made = [cast("Flow[..., Any]", each) for each in vars(module).values() if isinstance(each, Flow)]
    for each in {id(flow): flow for flow in made}.values():
        function = inspect.unwrap(cast("Callable[..., object]", each.fn))
        if isinstance(function, FunctionType) and Path(function.__code__.co_filename).resolve() == file.resolve():
            line = function.__code__.co_firstlineno
            yield SeenFlow(each.name, shown_path(file), line, declaration_of(each), function)


def declaration_of(flow: Any) -> FlowDeclaration:
    """Return the declaration of a flow; of a plain Prefect flow, what its tasks update and read."""
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
