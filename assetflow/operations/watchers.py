"""Pause and resume watchers."""

from __future__ import annotations

from assetflow.operations.installation import Installation


def switch(at: Installation, name: str, *, paused: bool) -> None:
    """Pause or resume a watcher.

    Raises:
        UnknownWatcher: no deployed asset has a watcher of this name.
    """
    at.ledger.writer.watchers.switch(name, paused=paused, now=at.now())
