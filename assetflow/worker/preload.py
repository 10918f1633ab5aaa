"""What a template imports for its children."""

from __future__ import annotations

import importlib
from contextlib import suppress

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
