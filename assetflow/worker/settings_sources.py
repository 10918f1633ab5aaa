"""Where Prefect's settings and logging come from: a child reads them anew only if that differs from its template's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from prefect.settings import PREFECT_LOGGING_SETTINGS_PATH, PREFECT_PROFILES_PATH

# In the folder of the process.
_FILES = (".env", "prefect.toml", "pyproject.toml")
# Besides Prefect's own: the place of its home, and what the console handler looks at when it is made.
_NAMES = frozenset({"HOME", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"})


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
    return name in _NAMES or (name.startswith("PREFECT_") and not name.startswith("PREFECT__"))


def set_up() -> None:
    """Make Prefect's settings and logging from what there is now."""
    from prefect.context import refresh_global_settings_context
    from prefect.logging.configuration import setup_logging

    refresh_global_settings_context()
    setup_logging(incremental=False)
