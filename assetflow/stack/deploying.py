"""Load the flows of a project, and deploy them with `prefect deploy --all`: `python -m assetflow.stack.deploying`.

Prefect also deploys a file that it cannot import, and only reads its text: the flow would have no schedule, and nobody
would notice. So this module loads all flows before it deploys any.
"""

from __future__ import annotations

import json
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import httpx
from prefect.exceptions import ScriptError
from prefect.flows import Flow

from assetflow.errors import AssetflowError, InvalidProject, UnsupportedPrefect
from assetflow.prefect_io.internals import needed_for

NOT_LOADED = 3


def load(entrypoint: str) -> None:
    """Load a flow as a worker would.

    Raises:
        InvalidProject: its file cannot be imported, or does not have this flow.
    """
    file, _, name = entrypoint.rpartition(":" if ":" in entrypoint else ".")
    with needed_for("A check of flows before their deploy"):
        from prefect.utilities.importtools import import_object
    try:
        found = import_object(entrypoint)
    except AttributeError:
        raise InvalidProject(
            f"there is no {name} in it", where=file, fix=f"Name a function with @flow in prefect.yaml: {file}:function"
        ) from None
    except ScriptError as error:
        raise _not_imported(error.user_exc, file) from error
    except Exception as error:
        raise _not_imported(error, file) from error
    if not isinstance(found, Flow):
        raise InvalidProject(
            f"{name} is not a flow", where=file, fix=f"Decorate it with @flow, or name another function of {file}"
        )


def _not_imported(error: BaseException, file: str) -> InvalidProject:
    where = _place(error) or file
    if isinstance(error, AssetflowError):
        inner = f"{where}: {error.where}" if error.where else where
        return InvalidProject(error.message, where=inner, fix=error.fix)
    if isinstance(error, ModuleNotFoundError) and error.name:
        fix = f"Install the package that provides it: {sys.executable} -m pip install {error.name.partition('.')[0]}"
        return InvalidProject(f"there is no module {error.name}", where=where, fix=fix)
    said = ": ".join((type(error).__name__, *str(error).splitlines()[:1]))
    return InvalidProject(f"cannot be imported: {said}", where=where, fix="Correct this line")


def _place(error: BaseException) -> str:
    """Return the innermost line of the project in the error's traceback, or an empty text."""
    here, found = Path.cwd(), ""
    for frame in traceback.extract_tb(error.__traceback__):
        place = Path(frame.filename)
        place = place if place.is_absolute() else here / place
        # Packages may be installed below the project.
        if place.is_relative_to(here) and "site-packages" not in place.parts and place.exists():
            found = f"{place.relative_to(here)}, line {frame.lineno}"
    return found


def main(arguments: Sequence[str]) -> None:
    """Load the flows, then deploy them if that is asked for.

    If a flow cannot be loaded, write the error to a file and exit with `NOT_LOADED`.

    Parameters:
        arguments: the file for the error; `--deploy FILE` to deploy what this `prefect.yaml` lists; the entrypoints.
    """
    problem_file, *entrypoints = arguments
    prefect_file = ""
    if entrypoints[0] == "--deploy":
        _, prefect_file, *entrypoints = entrypoints
    try:
        for entrypoint in dict.fromkeys(entrypoints):
            _load_or_skip(entrypoint, has_server=bool(prefect_file))
            # Whoever waits for this command sees that it moves.
            sys.stdout.write(f"{entrypoint} is loaded\n")
    except (InvalidProject, UnsupportedPrefect) as error:
        Path(problem_file).write_text(json.dumps(error.as_dict()))
        sys.exit(NOT_LOADED)
    if prefect_file:
        sys.argv = ["prefect", "--no-prompt", "deploy", "--all", "--prefect-file", prefect_file]
        runpy.run_module("prefect", run_name="__main__", alter_sys=True)


def _load_or_skip(entrypoint: str, *, has_server: bool) -> None:
    """Load a flow. Before Prefect's server runs, skip one that asks the server while it is imported."""
    try:
        load(entrypoint)
    except InvalidProject as error:
        if has_server or not _asks_prefect(error):
            raise


def _asks_prefect(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, httpx.TransportError):
        cause = cause.user_exc if isinstance(cause, ScriptError) else cause.__cause__ or cause.__context__
    return cause is not None


if __name__ == "__main__":
    main(sys.argv[1:])
