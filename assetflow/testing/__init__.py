"""Test schedules with a harness: `with harness() as h: ...`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assetflow.testing.environment import ConsumerRun, Harness, harness

__all__ = ["ConsumerRun", "Harness", "harness"]


def __getattr__(name: str) -> object:
    # pytest imports the plugin in every project. Prefect reads its settings when it is imported, and the project's own
    # `conftest.py` comes later.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("assetflow.testing.environment"), name)
