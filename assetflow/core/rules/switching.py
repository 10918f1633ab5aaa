"""Pause, resume, hold or release a consumer, with everything that follows it in the state."""

from __future__ import annotations

from datetime import datetime

from assetflow.core.freshness import deploying as freshness
from assetflow.core.rules import opening_hours, registry
from assetflow.core.rules.state import State
from assetflow.core.values.consumers import Consumer


def switch(
    state: State, before: Consumer, *, paused: bool | None = None, held: bool | None = None, now: datetime
) -> Consumer:
    """Switch a consumer, let its opening hours and versions follow, and return the changed consumer. Contract 3.4.

    Parameters:
        paused, held: `None` changes nothing.
    """
    changed = registry.switch(state, before, paused=paused, held=held)
    opening_hours.follow(state, before, changed, now)
    freshness.follow(state.freshness, before, changed, now)
    return changed
