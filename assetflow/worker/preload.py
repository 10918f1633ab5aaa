"""Where Prefect's settings and logging come from: a child reads them again only if that differs from its template's."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prefect.settings import PREFECT_LOGGING_SETTINGS_PATH, PREFECT_PROFILES_PATH

# In the folder of the process.
_FILES = (".env", "prefect.toml", "pyproject.toml")
# Besides Prefect's own: the place of its home, and what the console handler looks at when it is made.
_TERMINAL_NAMES = frozenset({"HOME", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"})


@dataclass(frozen=True)
class SettingsSources:
    """The variables and files from which Prefect's settings and logging are made.

    Attributes:
        files: place, time of the last change and size of those that exist.
        has_terminal: the error output is one, so that logs have colours.
    """

    variables: dict[str, str]
    files: tuple[tuple[str, int, int], ...]
    has_terminal: bool


def read_sources() -> SettingsSources:
    """Return what this process would make Prefect's settings and logging from now."""
    places = [*map(Path, _FILES), PREFECT_PROFILES_PATH.value(), PREFECT_LOGGING_SETTINGS_PATH.value()]
    files: list[tuple[str, int, int]] = []
    for place in places:
        if place.is_file():
            found = place.stat()
            files.append((str(place.absolute()), found.st_mtime_ns, found.st_size))
    variables = {name: value for name, value in os.environ.items() if _is_read(name)}
    return SettingsSources(variables, tuple(files), os.isatty(2))


def _is_read(name: str) -> bool:
    # Two underscores: what Prefect hands to one flow run, which is not a setting.
    return name in _TERMINAL_NAMES or (name.startswith("PREFECT_") and not name.startswith("PREFECT__"))


def set_up() -> None:
    """Make Prefect's settings and logging from what there is now."""
    from prefect.context import refresh_global_settings_context
    from prefect.logging.configuration import setup_logging

    refresh_global_settings_context()
    setup_logging(incremental=False)


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
    "assetflow.prefect_io.connection",
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


def preload() -> None:
    """Import what flow runs need, and what many of them import."""
    for name in _NEEDED:
        importlib.import_module(name)
    for name in _USEFUL:
        with suppress(ImportError):
            importlib.import_module(name)


def why_not_preload(name: str) -> str | None:
    """Import a module that the user wants besides, and return why it cannot be imported, or `None`."""
    try:
        importlib.import_module(name)
    # A module may raise anything while it is imported, and `SystemExit` too.
    except (Exception, SystemExit) as error:
        return f"cannot be imported ({type(error).__name__}: {error})"
    return None


_PREFIXES = ("PYTHON", "LD_", "MALLOC_", "OMP_", "OPENBLAS_", "MKL_", "ARROW_", "LC_")
_START_NAMES = frozenset({"LANG", "SSL_CERT_FILE"})


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that counts only when a process starts."""
    return {name: value for name, value in environment.items() if name.startswith(_PREFIXES) or name in _START_NAMES}


def differs(environment: Mapping[str, str], own: Mapping[str, str] = os.environ) -> bool:
    """Return True if a run with this environment needs a process of its own."""
    return read_at_start(environment) != read_at_start(own)
