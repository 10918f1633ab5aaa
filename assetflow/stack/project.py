"""Read the deployments and the work pools of a project from its `prefect.yaml`, and look for its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from assetflow.errors import InvalidProject
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
