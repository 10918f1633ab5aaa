"""The event with which something began to hold."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from assetflow.core.events import AssetEvent


def first_prefix(events: Sequence[AssetEvent], holds: Callable[[Sequence[AssetEvent]], bool]) -> int | None:
    """How many of the events, from the oldest on, are needed for something to hold; none if all are not enough.

    More updates never make a condition false, so a binary search finds it.
    """
    if not events or not holds(events):
        return None
    return bisect_left(range(1, len(events) + 1), True, key=lambda length: holds(events[:length])) + 1
